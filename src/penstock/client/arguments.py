"""A handler's parameters as a payload: encoded and validated at enqueue, decoded at the run."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any

import msgspec

from penstock.client.codec import decoder, encode
from penstock.client.inject import Injected
from penstock.model.errors import CorruptPayload, InvalidArguments, InvalidOption

_PATH = re.compile(r" - at `\$\.?(\w*)[^`]*`$")
_MISSING = re.compile(r"missing required field `(\w+)`")
_UNKNOWN = re.compile(r"unknown field `(\w+)`")
_EXPECTED = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")


class Arguments:
    """Knows one handler's parameters; its types are resolved when first needed."""

    def __init__(self, function: Callable[..., Any], type_name: str) -> None:
        self._function = function
        self._type_name = type_name
        self._parameters = list(inspect.signature(function).parameters.values())
        self.takes_context = bool(self._parameters) and _is_context(self._parameters[0])
        if self.takes_context:
            self._parameters = self._parameters[1:]
        for parameter in self._parameters:
            if parameter.kind is parameter.VAR_POSITIONAL or _is_context(parameter):
                raise InvalidOption(
                    "handler",
                    f"{function.__qualname__}({parameter})",
                    "a function with named parameters and the context first, or not at all",
                )
        self.injected: dict[str, Injected] = {
            p.name: p.default for p in self._parameters if isinstance(p.default, Injected)
        }
        self._plain = [p for p in self._parameters if p.name not in self.injected]
        self._names = tuple(p.name for p in self._plain if p.kind is not p.VAR_KEYWORD)
        self._required = tuple(
            p.name for p in self._plain if p.default is p.empty and p.kind is not p.VAR_KEYWORD
        )
        self._whole = frozenset(self._required)
        self._partial_decoders: dict[tuple[str, ...], msgspec.json.Decoder[Any]] = {}
        self._open = any(p.kind is p.VAR_KEYWORD for p in self._plain)
        self._positional = not self._open and all(
            p.kind is not p.KEYWORD_ONLY for p in self._parameters
        )

    def has(self, name: str) -> bool:
        """Whether the handler takes an argument of this name."""
        return self._open or name in self._names

    def encode(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], awaited: Collection[str] = ()
    ) -> tuple[str, tuple[str, ...]]:
        """The payload of a call, and the arguments it lacks besides those that are awaited.

        Raises a sentence when what is given does not fit the handler.
        """
        named = self._named(args, kwargs)
        if awaited:
            self.check_awaited(awaited, named)
        try:
            payload = encode(named)
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise self._unserializable(named, error) from error
        if self._whole <= named.keys():
            self._decode(payload)
            return payload, ()
        absent = tuple(name for name in self._required if name not in named)
        self._decode(payload, absent)
        return payload, tuple(name for name in absent if name not in awaited)

    def _named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if len(args) > len(self._names):
            raise InvalidArguments.unexpected(self._type_name, f"number {len(args)}", self._names)
        named = dict(zip(self._names, args, strict=False))
        if not kwargs:
            return named
        twice = named.keys() & kwargs.keys()
        if twice:
            raise InvalidArguments(
                self._type_name, sorted(twice)[0], "one value", "one by position and one by name"
            )
        return named | kwargs

    def check(self, payload: str, awaited: Collection[str] = ()) -> None:
        """Validate a payload written by hand."""
        if not awaited:
            self._decode(payload)
            return
        self._decode(payload, tuple(name for name in self._required if name in awaited))
        self.check_awaited(awaited, msgspec.json.decode(payload, type=dict[str, msgspec.Raw]))

    def lacking(self, name: str) -> InvalidArguments:
        """The refusal of a call that lacks a required argument."""
        return InvalidArguments.missing(self._type_name, name, self._kind(name))

    def decode(self, job_id: str, payload: str) -> "msgspec.Struct":
        """The stored arguments, typed."""
        try:
            return self._decode(payload)
        except InvalidArguments as error:
            raise CorruptPayload(job_id, self._type_name, str(error)) from error

    def call(self, context: Any, arguments: "msgspec.Struct", resources: Mapping[str, Any]) -> Any:
        """Call the handler with decoded arguments."""
        first = (context,) if self.takes_context else ()
        if self._positional and not resources:
            return self._function(*first, *msgspec.structs.astuple(arguments))
        values = msgspec.structs.asdict(arguments)
        extra = values.pop("extra_", None) or {}
        return self._function(*first, **values, **extra, **resources)

    def check_awaited(self, awaited: Collection[str], given: Collection[str]) -> None:
        """Refuse to wait for an argument that the handler does not take or that is given."""
        for name in awaited:
            if not self.has(name) or name in self.injected:
                raise InvalidArguments.unexpected(self._type_name, name, self._names)
            if name in given:
                raise InvalidArguments(
                    self._type_name, name, "one value", "one given and one from a parent"
                )

    def _decode(self, payload: str, absent: tuple[str, ...] = ()) -> "msgspec.Struct":
        """The arguments, typed; those in `absent` may be missing and are then no value at all."""
        used = self._decoder_without(absent) if absent else self._decoder
        try:
            arguments: msgspec.Struct = used.decode(payload)
        except msgspec.DecodeError as error:
            raise self._explain(str(error)) from error
        except UnicodeEncodeError as error:
            raise InvalidArguments(
                self._type_name, "payload", "valid Unicode", "half a surrogate pair"
            ) from error
        except RecursionError as error:
            raise InvalidArguments(
                self._type_name, "payload", "data without endless nesting", "too many levels"
            ) from error
        if self._open and not absent:
            given = msgspec.json.decode(payload)
            known = {name: getattr(arguments, name) for name in self._names}
            extra = {name: value for name, value in given.items() if name not in known}
            arguments = self._struct(**known, extra_=extra)
        return arguments

    @cached_property
    def _struct(self) -> Any:
        return self._struct_without(())

    def _struct_without(self, absent: tuple[str, ...]) -> Any:
        hints = inspect.get_annotations(self._function, eval_str=True)
        fields: list[Any] = []
        for parameter in self._plain:
            if parameter.kind is parameter.VAR_KEYWORD:
                continue
            kind = hints.get(parameter.name, Any)
            if parameter.name in absent:
                fields.append((parameter.name, kind, None))
            elif parameter.default is parameter.empty:
                fields.append((parameter.name, kind))
            else:
                default = parameter.default
                fields.append(
                    (parameter.name, kind, msgspec.field(default_factory=_constant(default)))
                )
        if self._open:
            fields.append(("extra_", dict[str, Any], msgspec.field(default_factory=dict)))
        return msgspec.defstruct(
            "Arguments", fields, kw_only=True, forbid_unknown_fields=not self._open
        )

    @cached_property
    def _decoder(self) -> "msgspec.json.Decoder[Any]":
        return self._decoder_of(lambda: self._struct)

    def _decoder_without(self, absent: tuple[str, ...]) -> "msgspec.json.Decoder[Any]":
        if absent not in self._partial_decoders:
            made = self._decoder_of(lambda: self._struct_without(absent))
            self._partial_decoders[absent] = made
        return self._partial_decoders[absent]

    def _decoder_of(self, struct: Callable[[], Any]) -> "msgspec.json.Decoder[Any]":
        try:
            return decoder(struct())
        except (NameError, TypeError) as error:
            raise InvalidOption(
                "handler", self._function.__qualname__, f"annotated with usable types ({error})"
            ) from error

    def _explain(self, problem: str) -> InvalidArguments:
        place = _PATH.search(problem)
        argument = place[1] if place else ""
        if not argument and (missing := _MISSING.search(problem)):
            return InvalidArguments.missing(self._type_name, missing[1], self._kind(missing[1]))
        if not argument and (unknown := _UNKNOWN.search(problem)):
            return InvalidArguments.unexpected(self._type_name, unknown[1], self._names)
        if expected := _EXPECTED.search(problem):
            named = argument or "payload"
            return InvalidArguments(self._type_name, named, expected[1], expected[2])
        found = " ".join(_PATH.sub("", problem).split())
        return InvalidArguments(
            self._type_name,
            argument or "payload",
            self._kind(argument),
            f"something else ({found})",
        )

    def _kind(self, argument: str) -> str:
        hints = inspect.get_annotations(self._function, eval_str=True)
        return inspect.formatannotation(hints[argument]) if argument in hints else "a JSON object"

    def _unserializable(self, named: dict[str, Any], error: Exception) -> InvalidArguments:
        for name, value in named.items():
            try:
                encode(value)
            except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
                return InvalidArguments(
                    self._type_name, name, "something JSON can hold", type(value).__name__
                )
        return InvalidArguments(self._type_name, "payload", "something JSON can hold", str(error))


def _is_context(parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    if isinstance(annotation, str):
        return annotation.strip("'\"").rpartition(".")[2].partition("[")[0] == "Context"
    return getattr(annotation, "__penstock_context__", False)


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value

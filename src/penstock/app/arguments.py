"""A handler's parameters as a payload: encoded and validated at enqueue, decoded at the run."""

import inspect
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import cached_property
from hashlib import sha256
from itertools import accumulate
from pathlib import PurePath
from typing import Any, TypeVar, cast

import msgspec

from penstock.app.pydantic_models import dump, is_model, load
from penstock.model.errors import CorruptPayload, InvalidArguments, InvalidOption

T = TypeVar("T")
Provider = Callable[
    [],
    "AsyncIterator[T] | Iterator[T] | AbstractAsyncContextManager[T] | AbstractContextManager[T]",
]


class Injected:
    """Stands in a signature for a resource until a worker fills it in."""

    __slots__ = ("provider",)

    def __init__(self, provider: Callable[[], Any]) -> None:
        self.provider = provider

    def __repr__(self) -> str:
        return f"inject({self.provider.__qualname__})"


def inject(provider: "Provider[T]") -> T:
    """A default value that asks for a resource: `def report(day: str, db: Db = inject(open_db))`.

    The provider yields the resource once, or returns a (possibly async) context manager. It is
    entered when a worker first needs it and left when that worker stops.
    """
    return cast(T, Injected(provider))


_PIECE = 65_536
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""One level down, one level up, as signed bytes."""

_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))


def encode_hook(value: Any) -> Any:
    """Turn a value msgspec does not know into one it does."""
    if is_model(value):
        return dump(value)
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON")


def decode_hook(kind: type, value: Any) -> Any:
    """Turn plain data into a type msgspec does not know."""
    if is_model(kind):
        return load(kind, encoder.encode(value))
    if issubclass(kind, PurePath):
        return kind(value)
    if isinstance(value, kind):
        return value
    raise ValueError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")


encoder = msgspec.json.Encoder(enc_hook=encode_hook, decimal_format="string")
_ordered = msgspec.json.Encoder(
    enc_hook=encode_hook, decimal_format="string", order="deterministic"
)
KEY_DIGITS = 32


def encode(value: Any) -> str:
    """JSON text of a value."""
    return encoder.encode(value).decode()


def hashed_key(name: str, *parts: Any) -> str:
    """Make a unique key of any values: `hashed_key("thumbnail", url, {"width": 100})`.

    The same values give the same key in every process; the order of a mapping does not matter.
    """
    if not parts:
        raise InvalidOption("parts", "none", "the values that tell one job from another")
    try:
        text = _ordered.encode(parts)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidOption("parts", type(error).__name__, f"values for JSON ({error})") from error
    return f"{name}-{sha256(text).hexdigest()[:KEY_DIGITS]}"


def decoder(kind: Any, *, strict: bool = True) -> "msgspec.json.Decoder[Any]":
    """A decoder that gives back values of a type."""
    return msgspec.json.Decoder(kind, dec_hook=decode_hook, strict=strict)


class Shape(msgspec.Struct, frozen=True):
    """How a JSON text is built: its levels of nesting, and how many items of the outermost list or
    object are lists or objects themselves.
    """

    depth: int
    items: int


def shape_of(text: bytes) -> Shape:
    """Measure a JSON text in one pass: `shape_of(b'[{"a": []}]') == Shape(3, 1)`."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    level = deepest = at_first = quoted = 0
    # Piece by piece, between which other threads have their turn.
    for start in range(0, len(text), _PIECE):
        parts = text[start : start + _PIECE].split(b'"')
        brackets = b"".join(parts[quoted::2]).translate(_STEPS, _NO_BRACKETS)
        quoted ^= (len(parts) - 1) & 1
        if not brackets:
            continue
        levels = list(accumulate(memoryview(brackets).cast("b"), initial=level))
        deepest = max(deepest, max(levels))
        # The outermost one comes to level 1 when it begins, and again after each of its items.
        at_first += levels.count(1) - (level == 1)
        level = levels[-1]
    return Shape(deepest, max(0, at_first - 1))


def depth(text: str) -> int:
    """How many levels a JSON text nests: `depth('[{"a": []}]') == 3`."""
    return shape_of(text.encode("utf-8", "replace")).depth


def deeper_than(text: str, limit: int) -> bool:
    """Whether a JSON text nests deeper; one with few brackets is not looked at closely."""
    if text.count("{") + text.count("[") <= limit:
        return False
    return depth(text) > limit


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
        self.whole: Callable[[Mapping[str, Any]], object] | None = None
        """Refuses arguments that do not go together, where there is something that knows."""
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
        if self.whole is not None and not absent:
            self.whole(msgspec.structs.asdict(arguments))
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
        said = " ".join(_PATH.sub("", problem).split())
        return InvalidArguments(
            self._type_name,
            argument or "payload",
            self._kind(argument),
            f"something else ({said})",
        )

    def _kind(self, argument: str) -> str:
        hints = inspect.get_annotations(self._function, eval_str=True)
        return inspect.formatannotation(hints[argument]) if argument in hints else "a JSON object"

    def _unserializable(self, named: dict[str, Any], error: Exception) -> InvalidArguments:
        for name, value in named.items():
            try:
                encode(value)
            except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as problem:
                kind, wanted = type(value).__name__, "something JSON can hold"
                if is_model(value):
                    kind = f"{kind} ({problem})"
                return InvalidArguments(self._type_name, name, wanted, kind)
        return InvalidArguments(self._type_name, "payload", "something JSON can hold", str(error))


def _is_context(parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    if isinstance(annotation, str):
        return annotation.strip("'\"").rpartition(".")[2].partition("[")[0] == "Context"
    return getattr(annotation, "__penstock_context__", False)


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value

"""What to write into the payload of a type, as an example to be filled in."""

import inspect
import json
from typing import Any, get_type_hints

import msgspec

from penstock.client.job_type import JobType

EXAMPLES: dict[type, Any] = {
    str: "",
    int: 0,
    float: 0.0,
    bool: False,
    list: [],
    dict: {},
    tuple: [],
}


def outline(type_: JobType[..., ..., Any]) -> str:
    """The arguments by name, each with its default or something of its kind."""
    try:
        hints = get_type_hints(type_.function)
    except Exception:  # a hint that cannot be resolved is the type's own matter
        hints = {}
    named = {
        name: _example(parameter, hints.get(name))
        for name, parameter in inspect.signature(type_.function).parameters.items()
        if type_.arguments.has(name) and parameter.kind is not parameter.VAR_KEYWORD
    }
    return json.dumps(named, indent=2, ensure_ascii=False)


def summary(type_: JobType[..., ..., Any]) -> str:
    """The first line of what its function says of itself."""
    return (inspect.getdoc(type_.function) or "").partition("\n")[0]


def _example(parameter: inspect.Parameter, hint: Any) -> Any:
    if parameter.default is not parameter.empty:
        try:
            return msgspec.to_builtins(parameter.default)
        except TypeError:
            return None
    return EXAMPLES.get(getattr(hint, "__origin__", hint))

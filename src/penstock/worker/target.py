"""Where another process finds an application: the target it was loaded from, or its globals."""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from penstock.app.job_type import JobType
from penstock.app.penstock import Penstock
from penstock.config import Settings, load_settings
from penstock.model.errors import InvalidOption, PenstockError
from penstock.operate.notices import notice_types

MAIN_COPY = "__penstock_main__"
"""What a script is called in a process that loads it again, so that it does not start anew."""


class Place(msgspec.Struct, frozen=True):
    """A global of a module that leads to the application: it, or one of its types."""

    module: str
    attribute: str
    path: str | None = None
    """The file of a script, which is no module that can be imported."""


class NotFoundInProcess(PenstockError):
    """A type that no process of its own can find."""

    @classmethod
    def nowhere(cls, type_name: str) -> "NotFoundInProcess":
        """The refusal of a type whose application no module holds."""
        return cls(f"No module holds the application of job type {type_name!r} in a global.")


def load_app(target: str, url: str | None = None) -> Penstock:
    """The application behind `module:app`."""
    module_name, _, attribute = target.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and module_name.startswith(error.name):
            raise InvalidOption("app", target, _importable(module_name, error)) from error
        raise
    found = _attribute_of(module, attribute or "app")
    if not isinstance(found, Penstock):
        raise InvalidOption("app", target, _application(module, attribute or "app", found))
    if url is not None:
        found.settings = found.settings.replace(url=url)
    found.target = target
    return found


def app_of(target: str | None, url: str | None, settings: Mapping[str, Any]) -> Penstock:
    """The same with further settings; without a target, an application that knows no job type."""
    if target is None:
        return Penstock(settings=load_settings(url=url).replace(**settings))
    app = load_app(target, url)
    app.settings = app.settings.replace(**settings)
    return app


def _importable(module_name: str, error: ModuleNotFoundError) -> str:
    package = module_name.partition(".")[0]
    where = ""
    if error.name == package:
        where = f"; start in the folder that holds {package!r}, or name that folder in PYTHONPATH"
    return f"importable, such as shop.jobs:app ({error}{where})"


def _application(module: ModuleType, name: str, found: object) -> str:
    """What was expected of a module, what is there instead, and what would be right."""
    there = "there is none" if found is None else f"{name!r} is a {type(found).__name__}"
    apps = [each for each, value in vars(module).items() if isinstance(value, Penstock)]
    right = f"; try {module.__name__}:{apps[0]}" if apps else ""
    return f"module:name of a Penstock application ({there}{right})"


def places_of(app: Penstock) -> tuple[Place, ...]:
    """Everywhere a child may find an application again, the likeliest first.

    A script comes last: it is run once more to be looked into.
    """
    places: list[Place] = []
    if app.target is not None:
        module_name, _, attribute = app.target.partition(":")
        places.append(Place(module_name, attribute or "app"))
    main: list[Place] = []
    for name, module in list(sys.modules.items()):
        variable = _global_of(module, app)
        if variable is None:
            continue
        if name != "__main__":
            places.append(Place(name, variable))
        elif (place := _main_place(module, variable)) is not None:
            main.append(place)
    return (*dict.fromkeys(places), *main)


def find_type(
    places: Sequence[Place], settings: Settings, type_name: str
) -> JobType[..., ..., Any]:
    """Load the application in this process, from the first place that knows the type."""
    reasons: list[str] = []
    for place in places:
        try:
            app = _load(place)
        except BaseException as error:  # a script without a guard may even exit
            reasons.append(f"{place.path or place.module} raised {error!r}")
            continue
        if app is None:
            reasons.append(f"{place.module} has no application in {place.attribute!r}")
            continue
        app.settings = settings
        type_ = app.types.get(type_name) or notice_types(app).get(type_name)
        if type_ is not None:
            return type_
        reasons.append(f"{place.module} does not register it when it is imported")
    raise NotFoundInProcess(f"Job type {type_name!r} was not found: {'; '.join(reasons)}.")


def main_module() -> str | None:
    """The name under which a child knows the module that is `__main__` here."""
    main = sys.modules["__main__"]
    place = _main_place(main, "")
    return None if place is None else place.module


def refuse_while_loading() -> None:
    """Keep a script without a guard from starting a worker in the process of a job."""
    if _loading:
        raise PenstockError(
            "A worker was started while the process of a job loaded its application; put the "
            "start under `if __name__ == '__main__':`."
        )


_loading: list[Place] = []


def _load(place: Place) -> Penstock | None:
    _loading.append(place)
    try:
        return _loaded(place)
    finally:
        _loading.clear()


def _loaded(place: Place) -> Penstock | None:
    module = import_module(place.module) if place.path is None else _load_script(place.path)
    found = _attribute_of(module, place.attribute)
    if isinstance(found, JobType):
        found = vars(found).get("app")
    return found if isinstance(found, Penstock) else None


def _load_script(path: str) -> ModuleType:
    """Run a script under another name, where the guard of its last lines keeps it from starting."""
    if MAIN_COPY not in sys.modules:
        module = ModuleType(MAIN_COPY)
        module.__file__ = path
        before = sys.modules["__main__"]
        sys.modules[MAIN_COPY] = sys.modules["__main__"] = module
        try:
            exec(compile(Path(path).read_bytes(), path, "exec"), vars(module))
        except BaseException:
            del sys.modules[MAIN_COPY]
            sys.modules["__main__"] = before
            raise
    return sys.modules[MAIN_COPY]


def _attribute_of(module: ModuleType, path: str) -> Any:
    found: Any = module
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def _global_of(module: object, app: Penstock) -> str | None:
    """The name of a global that leads to an application; lazy objects are left asleep."""
    for name, value in list(getattr(module, "__dict__", {}).items()):
        if value is app or (type(value) is JobType and vars(value).get("app") is app):
            return str(name)
    return None


def _main_place(main: ModuleType, attribute: str) -> Place | None:
    """Where `__main__` is found by others; nowhere, for a shell."""
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name != "__main__":
        return Place(spec.name, attribute)
    path = os.path.abspath(str(getattr(main, "__file__", None) or ""))
    return Place(MAIN_COPY, attribute, path) if os.path.isfile(path) else None

"""The extensions of an application: those it names, those its settings name, those installed."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.extension import Counter, Extension, Gate, load
from penstock.model.errors import NOT_SHOWN, InvalidOption, MissingExtra
from penstock.model.redact import add_rule

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from penstock.app.penstock import Penstock

GROUP = "penstock.extensions"
_OF_UNITS = frozenset({"now", "enqueue_many", "set_column"})


@cache
def installed() -> dict[str, Extension]:
    """Extensions of installed packages, by name: entry points of the group `penstock.extensions`.

    They are looked for when one is asked for by name, and where everything starts that may need
    any: workers, the server, the command line. A program that only enqueues does not pay for it.
    """
    from importlib.metadata import entry_points

    found = [_loaded(point) for point in entry_points(group=GROUP)]
    return {extension.name: extension for extension in found}


def _loaded(point: "EntryPoint") -> Extension:
    try:
        return _checked(point.name, point.load())
    except (ImportError, AttributeError) as error:
        expected = f"an installed extension that can be loaded ({error}); mend or uninstall it"
        raise InvalidOption("extensions", point.name, expected) from error


class Extensions:
    """What an application is extended by; each is there once."""

    def __init__(self, app: "Penstock", given: Sequence[Extension | str]) -> None:
        self._app = app
        self._enabled: dict[str, Extension] = {}
        self.gates: list[tuple[Extension, Gate]] = []
        """Those of all that are enabled: every enqueue looks whether there are any."""
        self.counters: list[tuple[Extension, Counter]] = []
        """Likewise."""
        self._namespaces: dict[str, Any] = {}
        self._settings: dict[str, Any] = {}
        for one in (*given, *app.settings.extensions):
            self.enable(load_extension(one))

    def __iter__(self) -> Iterator[Extension]:
        """Those that are enabled, in the order in which they were."""
        return iter(list(self._enabled.values()))

    def enable(self, extension: Extension) -> None:
        """Take an extension in: its job types, schedules, limits and breakers at once."""
        known = self._enabled.get(extension.name)
        if known is extension:
            return
        if known is not None or _is_ours(self._app, extension.name):
            raise InvalidOption("extension", extension.name, "a name that nothing else has")
        if extension.settings is None and extension.name in self._app.settings.extension:
            expected = "left out: this extension has no settings"
            raise InvalidOption(extension.name, "a table", expected)
        if extension.blueprint is not None:
            self._app.include(load(extension.blueprint))
        if extension.redact is not None:
            add_rule(load(extension.redact))
        self._enabled[extension.name] = extension
        self.gates += [(extension, gate) for gate in extension.gates]
        if extension.counter is not None:
            self.counters.append((extension, loaded_part(extension, extension.counter)(self._app)))
        if extension.settings is not None:
            self.settings(extension.name)

    def enable_installed(self) -> None:
        """Take in what is installed and always on, and refuse settings that nobody reads."""
        for extension in installed().values():
            if extension.always:
                self.enable(extension)
        for name in self._app.settings.extension:
            if self.find(name) is None:
                known = ", ".join(sorted({*self._enabled, *installed()})) or "none"
                raise InvalidOption(name, "a table", f"the name of an extension (known: {known})")

    def find(self, name: str) -> Extension | None:
        """An extension that is enabled or installed."""
        return self._enabled.get(name) or installed().get(name)

    def known(self) -> dict[str, Extension]:
        """All that are enabled or installed, by name."""
        return {**installed(), **self._enabled}

    def settings(self, name: str) -> Any:
        """The settings of an extension: its TOML table, and `PENSTOCK_<NAME>__<FIELD>`."""
        extension = self.find(name)
        if extension is None or extension.settings is None:
            raise InvalidOption("extension", name, "one that has settings")
        if name not in self._settings:
            given = self._app.settings.extension.get(name, {})
            try:
                self._settings[name] = msgspec.convert(given, extension.settings, strict=False)
            except msgspec.ValidationError as error:
                # Of secrets among them nothing is said.
                expected = f"a valid table of settings ({error})"
                raise InvalidOption(name, NOT_SHOWN, expected) from error
        return self._settings[name]

    def namespace(self, name: str) -> Any:
        """What `app.NAME` is; AttributeError if no extension brings it."""
        if name not in self._namespaces:
            extension, part = self._bringing(name)
            self.enable(extension)
            self._namespaces[name] = loaded_part(extension, part)(self._app)
        return self._namespaces[name]

    async def close(self) -> None:
        """Close counters, and namespaces that hold something open: with an `async def close()`."""
        for _, counter in self.counters:
            await counter.close()
        for namespace in self._namespaces.values():
            close = getattr(namespace, "close", None)
            if close is not None:
                await close()

    def _bringing(self, name: str) -> tuple[Extension, Any]:
        extension = self.find(name)
        if extension is not None and extension.namespace is not None:
            return extension, extension.namespace
        for extension in self.known().values():
            if name in extension.names:
                return extension, extension.names[name]
        raise AttributeError(f"'Penstock' object has no attribute {name!r}")


def _is_ours(app: "Penstock", name: str) -> bool:
    """Whether an application, or a unit of work, has something of that name itself."""
    return name in vars(app) or hasattr(type(app), name) or name in _OF_UNITS


def loaded_part(extension: Extension, part: Any) -> Any:
    """A part of an extension; what it lacks is named by the extra that brings it."""
    try:
        return load(part)
    except ModuleNotFoundError as error:
        if extension.needs is None:
            raise
        raise MissingExtra(extension.needs, error.name or part) from error


def load_extension(given: Extension | str) -> Extension:
    """The extension that is meant by its name, or by its place, `module:name`."""
    if not isinstance(given, str):
        return _checked(repr(given), given)
    if ":" not in given:
        found = installed().get(given)
        if found is None:
            known = ", ".join(sorted(installed())) or "none"
            expected = f"an installed extension ({known}) or its place, module:name"
            raise InvalidOption("extensions", given, expected)
        return found
    try:
        return _checked(given, load(given))
    except (ImportError, AttributeError) as error:
        raise InvalidOption("extensions", given, f"one that can be loaded ({error})") from error


def _checked(name: str, found: object) -> Extension:
    if not isinstance(found, Extension):
        raise InvalidOption("extensions", name, "a penstock.Extension")
    return found

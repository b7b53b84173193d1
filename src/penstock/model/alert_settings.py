"""What an installation changes about alerts: `[penstock.alerts]` in its TOML file."""

import re
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from penstock.model.alert_rules import MEASURES, OFFERED, RULES, Metric, Rule, Severity

EVERY_TYPE = "*"
Seconds = Annotated[float, Meta(ge=0, le=30 * 86_400)]
Window = Annotated[float, Meta(ge=60, le=30 * 86_400)]

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_ROUTE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_BY_TYPE = {metric for metric, measure in MEASURES.items() if measure.windowed}
_BY_QUEUE = {Metric.QUEUE_DEPTH, Metric.OLDEST_JOB, Metric.BACKPRESSURE, *_BY_TYPE}
_KNOWN = {rule.name: rule for rule in (*RULES, *OFFERED)}


class RuleSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is different about a rule, or all about a new one; times are in seconds."""

    enabled: bool = True
    metric: Metric | None = None
    threshold: float | None = None
    severity: Severity | None = None
    action: Annotated[str, Meta(max_length=500)] | None = None
    duration: Seconds | None = None
    window: Window | None = None
    at_least: Annotated[int, Meta(ge=0)] | None = None
    cool_down: Seconds | None = None
    route: str | None = None
    queue: str | None = None
    type: str | None = None

    @property
    def changes(self) -> dict[str, object]:
        """What it says of the rule itself."""
        found = {name: value for name, value in asdict(self).items() if value is not None}
        del found["enabled"]
        return found


class AlertSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules that differ, routes to people, and the types whose every death matters.

    A rule that names no route takes `critical_route` if it is critical, else `route`, else the
    first one.

    A route is one URL of apprise or several; `${NAME}` in it stands for a variable of the
    environment, and `${file:PATH}` for what a file holds. `critical_types` may be `["*"]`.
    """

    enabled: bool = True
    cool_down: Seconds | None = None
    route: str | None = None
    critical_route: str | None = None
    routes: dict[str, str | tuple[str, ...]] = {}
    critical_types: tuple[str, ...] = ()
    rules: dict[str, RuleSettings] = {}

    def __post_init__(self) -> None:
        named = {f"rule {name!r}": rule.route for name, rule in self.rules.items()}
        named |= {"'route'": self.route, "'critical_route'": self.critical_route}
        for whose, route in named.items():
            if route is not None and route not in self.routes:
                known = ", ".join(self.routes) or "none is named"
                raise ValueError(f"{whose} names the route {route!r}; known are: {known}")
        for name, urls in self.routes.items():
            if not _ROUTE.fullmatch(name):
                raise ValueError(f"a route's name is a word, and {name[:64]!r} is not")
            if not _urls(urls) or not all(_looks_like_a_url(url) for url in _urls(urls)):
                raise ValueError(f"route {name!r} must be made of URLs such as json://host/path")
        for name, changed in self.rules.items():
            _check(name, changed)

    @property
    def standing(self) -> list[Rule]:
        """The rules that hold, those of the installation last."""
        if not self.enabled:
            return []
        named = {name: found for name, found in self.rules.items() if found.enabled}
        off = self.rules.keys() - named.keys()
        chosen = [rule for rule in OFFERED if rule.name in named]
        known = [self._changed(rule) for rule in (*RULES, *chosen) if rule.name not in off]
        own = [_own(name, found) for name, found in named.items() if name not in _KNOWN]
        return [self._routed(rule) for rule in (*known, *own)]

    def urls(self, route: str) -> tuple[str, ...]:
        """The URLs of a route, secrets not filled in; none if there is no such route."""
        return _urls(self.routes.get(route, ()))

    def _changed(self, rule: Rule) -> Rule:
        if self.cool_down is not None:
            rule = replace(rule, cool_down=self.cool_down)
        changed = self.rules.get(rule.name)
        return rule if changed is None else replace(rule, **changed.changes)

    def _routed(self, rule: Rule) -> Rule:
        if rule.route is not None:
            return rule
        chosen = self.critical_route if rule.severity is Severity.CRITICAL else None
        return replace(rule, route=chosen or self.route or next(iter(self.routes), None))


def shown(url: str) -> str:
    """A route's URL as anybody may see it: which service, and nothing else."""
    service, mark, _ = url.partition("://")
    return f"{service}://***" if mark and "$" not in service else "***"


def _check(name: str, changed: RuleSettings) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"a rule's name is made of a-z, 0-9 and _, and {name[:64]!r} is not")
    known = _KNOWN.get(name)
    metric = changed.metric
    if known is not None:
        if metric not in (None, known.metric):
            raise ValueError(f"rule {name!r} measures {known.metric}; name a rule of your own")
        metric = known.metric
    elif changed.enabled and (metric is None or changed.threshold is None):
        listed = ", ".join(_KNOWN)
        raise ValueError(
            f"rule {name!r} is new and needs a metric and a threshold; known rules are: {listed}"
        )
    elif metric is Metric.CRITICAL_DEAD:
        raise ValueError(f"rule {name!r} cannot measure {metric}; use critical_types")
    for option, allowed in (("queue", _BY_QUEUE), ("type", _BY_TYPE)):
        if getattr(changed, option) is not None and metric is not None and metric not in allowed:
            raise ValueError(f"rule {name!r} measures {metric}, which no {option} narrows down")


def _own(name: str, found: RuleSettings) -> Rule:
    said = {"severity": Severity.WARNING, "action": "Look into it.", **found.changes}
    return Rule(name=name, **said)  # type: ignore[arg-type]  # checked when it was read


def _urls(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else given


def _looks_like_a_url(url: str) -> bool:
    scheme, mark, rest = url.partition("://")
    return bool(scheme and mark and rest) or url.startswith("${")

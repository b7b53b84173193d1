"""Regenerates the parts of the docs that are made from code; `--check` fails if one is stale.

A generated part stands between `<!-- generated: name -->` and `<!-- end -->`.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

from penstock.apps.agents.options import OPTIONS as AGENT_OPTIONS
from penstock.apps.agents.options import Options
from penstock.apps.agents.schedules import DEFAULTS
from penstock.cli.enqueue import METAVARS
from penstock.model.alert_rules import MEASURES, OFFERED, RULES
from penstock.model.job import OPTIONS
from penstock.model.retry import POLICIES, Policy
from penstock.model.states import TERMINAL, TRANSITIONS, Status
from penstock.model.wording import span

DOCS = Path(__file__).parents[1] / "docs"
_PART = re.compile(
    r"(?P<open><!-- generated: (?P<name>[\w-]+) -->\n).*?(?P<close><!-- end -->)", re.DOTALL
)


def states_mermaid() -> str:
    """The state machine as a Mermaid picture, steps between the same two states on one arrow."""
    arrows: dict[tuple[Status, Status], list[str]] = {}
    for step in TRANSITIONS:
        arrows.setdefault((step.source, step.target), []).append(step.action)
    lines = ["stateDiagram-v2", "    [*] --> pending: enqueue", "    [*] --> queued: enqueue"]
    lines += [
        f"    {source} --> {target}: {', '.join(actions)}"
        for (source, target), actions in arrows.items()
    ]
    lines += [f"    {status} --> [*]" for status in Status if status in TERMINAL]
    return "\n".join(("```mermaid", *lines, "```"))


def states_table() -> str:
    """Every state, the steps that leave it and where they lead."""
    rows = ["| from | action | to |", "|---|---|---|"]
    rows += [f"| `{step.source}` | {step.action} | `{step.target}` |" for step in TRANSITIONS]
    final = [status for status in Status if not any(status == step.source for step in TRANSITIONS)]
    rows += [f"| `{status}` | – | – |" for status in final]
    return "\n".join(rows)


def retry_table() -> str:
    """Every class of error and how it is retried."""
    rows = [
        "| class | retried | budget | first delay | multiplier | spends an attempt |",
        "|---|---|---|---|---|---|",
    ]
    for error_class, policy in POLICIES.items():
        rows.append(f"| `{error_class}` | {' | '.join(_retry_cells(policy))} |")
    return "\n".join(rows)


def _retry_cells(policy: Policy) -> tuple[str, ...]:
    if not policy.retried:
        return ("no: dead letter", "–", "–", "–", "–")
    return (
        "yes, with more time" if policy.more_time else "yes",
        str(policy.budget),
        f"{policy.delay_ms / 1000:g} s" if policy.delay_ms else "at once",
        f"×{policy.multiplier:g}",
        "yes" if policy.spends_attempt else "no",
    )


def alert_rules() -> str:
    """Every rule that is known by name."""
    rows = [
        "| rule | measures | fires at | for | severity | what to do | route | holds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for rule in (*RULES, *OFFERED):
        duration = span(rule.duration * 1000) if rule.duration else "at once"
        cells = (
            f"`{rule.name}`",
            MEASURES[rule.metric].meaning,
            rule.condition,
            duration,
            rule.severity,
            rule.action,
            rule.route or "the default",
            "from the start" if rule in RULES else "when named",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def alert_metrics() -> str:
    """Everything that a rule of one's own can measure."""
    rows = ["| metric | what it is | unit | fires | over a window |", "|---|---|---|---|---|"]
    for metric, measure in MEASURES.items():
        side = "below" if measure.below else "from" if measure.reached else "above"
        windowed = "yes" if measure.windowed else "–"
        rows.append(f"| `{metric}` | {measure.meaning} | {measure.unit} | {side} | {windowed} |")
    return "\n".join(rows)


def call_options() -> str:
    """Every option of a call, on the command line."""
    rows = ["| option | meaning |", "|---|---|"]
    for option in OPTIONS.values():
        flag = f"--{option.name.replace('_', '-')} {METAVARS[type(option)]}"
        default = f" ({option.written(option.default)})" if option.default else ""
        choices = f": {', '.join(f'`{each}`' for each in option.choices)}" if option.choices else ""
        meaning = f"{option.about[0].lower()}{option.about[1:].removesuffix('.')}{choices}{default}"
        rows.append(f"| `{flag}` | {meaning} |")
    return "\n".join(rows)


def schedule_options() -> str:
    """The options that a schedule's jobs have on the command line, in one sentence."""
    named = [option.name for option in OPTIONS.values() if option.in_schedules]
    flags = ", ".join(f"`--{name.replace('_', '-')}`" for name in named)
    return f"Its jobs have the options {flags}, as with [`penstock enqueue`](#penstock-enqueue)."


def agent_types() -> str:
    """The types of the agent workers, and how each is run."""
    rows = [
        "| type | priority | retries | delay | timeout | at once | rate | queue | critical |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rows += [
        f"| `{name}` | {' | '.join(_agent_cells(options))} |"
        for name, options in AGENT_OPTIONS.items()
    ]
    return "\n".join(rows)


def _agent_cells(options: Options) -> tuple[str, ...]:
    growth = "fixed" if options.backoff == 1 else "growing"
    return (
        str(options.priority),
        str(options.max_retries),
        f"{growth} {span(int(options.retry_delay * 1000))}",
        span(int(options.timeout * 1000)),
        str(options.per_worker),
        options.rate_per_worker or "–",
        f"`{options.queue}`",
        "yes" if options.critical else "–",
    )


def agent_schedules() -> str:
    """The default schedules of the agent workers."""
    rows = ["| schedule | cron | type | data |", "|---|---|---|---|"]
    for each in DEFAULTS:
        data = json.dumps(each.data)
        rows.append(f"| `{each.name}` | `{each.cron}` | `{each.type}` | `{data}` |")
    return "\n".join(rows)


PARTS: dict[str, Callable[[], str]] = {
    "states-mermaid": states_mermaid,
    "states-table": states_table,
    "retry-table": retry_table,
    "alert-rules": alert_rules,
    "alert-metrics": alert_metrics,
    "call-options": call_options,
    "schedule-options": schedule_options,
    "agent-types": agent_types,
    "agent-schedules": agent_schedules,
}


def regenerated(text: str, page: str) -> str:
    """A page with its generated parts made anew."""

    def part(match: re.Match[str]) -> str:
        if match["name"] not in PARTS:
            known = ", ".join(PARTS)
            raise SystemExit(f"{page}: nothing generates {match['name']!r}; known are {known}.")
        return f"{match['open']}{PARTS[match['name']]()}\n{match['close']}"

    return _PART.sub(part, text)


def stale_pages() -> dict[Path, str]:
    """Pages whose generated parts differ from the code, with their text as it should be."""
    fresh = {
        page: regenerated(page.read_text("utf-8"), page.name) for page in sorted(DOCS.rglob("*.md"))
    }
    return {page: text for page, text in fresh.items() if text != page.read_text("utf-8")}


def main() -> int:
    """Write stale pages anew, or only name them."""
    stale = stale_pages()
    for page, text in stale.items():
        name = page.relative_to(DOCS.parent)
        if "--check" in sys.argv[1:]:
            print(f"{name} differs from the code; run `make docs`.", file=sys.stderr)
        else:
            page.write_text(text, "utf-8")
            print(f"wrote {name}")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Telling people, or a script, how a torture run went."""

import msgspec
from rich.console import Console
from rich.table import Table

from penstock.testing.torture.audit import Findings


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one run."""

    seed: int
    url: str
    evidence: str
    seconds: float
    kills: int
    freezes: int
    terminations: int
    cuts: int
    crashes: int
    starts: int
    stale_writes_refused: int
    findings: Findings

    @property
    def passed(self) -> bool:
        """Whether the store kept its word."""
        return self.findings.clean


def show(outcome: Outcome, console: Console, *, as_json: bool) -> None:
    """Print the figures as a table or as one JSON object."""
    if as_json:
        figures = msgspec.to_builtins(outcome)
        figures |= figures.pop("findings") | {"passed": outcome.passed}
        console.out(msgspec.json.encode(figures).decode(), highlight=False)
        return
    console.print(_table(outcome))
    for complaint in outcome.findings.complaints:
        console.print(f"  {complaint}", highlight=False)
    if outcome.passed:
        console.print("[green]Every job is accounted for.[/green]")
    else:
        console.print(
            f"[red]The store broke a promise.[/red] Try again with --seed {outcome.seed}; "
            f"the evidence is in {outcome.evidence} and {outcome.url}."
        )


def _table(outcome: Outcome) -> Table:
    found = outcome.findings
    table = Table(title=f"penstock torture, seed {outcome.seed}", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    rows = (
        ("acknowledged", found.acknowledged, "enqueue returned"),
        ("completed", found.completed, "ran to their end"),
        ("dead letters", found.dead, "their workers died too often"),
        (
            "duplicates",
            found.duplicates,
            f"executions repeated, of {found.leases_lost} leases lost",
        ),
        ("unexplained", found.unexplained, "repeated though nobody struck the worker"),
        ("lost", found.lost, "not ended, or ended without an effect"),
        ("stale writes", found.stale_writes, f"accepted; {outcome.stale_writes_refused} refused"),
        ("kills", outcome.kills, "SIGKILL"),
        ("freezes", outcome.freezes, "SIGSTOP past the lease, then SIGCONT"),
        ("terminations", outcome.terminations, "SIGTERM, some twice"),
        ("cuts", outcome.cuts, "connections ended by the server"),
        ("crashes", outcome.crashes, "of the server, which came back"),
        ("starts", outcome.starts, "processes started"),
        ("integrity", "ok" if found.integrity else "broken", "what the store says of itself"),
        ("seconds", f"{outcome.seconds:.0f}", "from the first start to the last check"),
    )
    for name, figure, note in rows:
        bad = name in ("lost", "stale writes", "unexplained") and figure
        table.add_row(name, f"[red]{figure}[/red]" if bad else str(figure), note)
    return table

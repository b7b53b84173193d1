"""`penstock jobs explain`: why a job does, or does not, run."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import JsonFlag, console, plain, styled, write_json
from penstock.cli.session import ask
from penstock.client.documents import document

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.model.explain import Explanation

CALM = {"ended", "running", "ready", "due"}


def explain(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The job's id.")],
    as_json: JsonFlag = False,
) -> None:
    """Say why a job does not run, every reason, the weightiest first."""
    from penstock.client.explain import explain as reasons_of
    from penstock.model.errors import JobNotFound

    found = ask(ctx, lambda store: store.reader.standing(job_id))
    if found is None:
        raise JobNotFound(job_id)
    explanation = reasons_of(found)
    if as_json:
        write_json(explanation_document(explanation))
    else:
        show_explanation(console(), found.job.type, explanation)


def explanation_document(explanation: "Explanation") -> dict[str, Any]:
    """An explanation for scripts."""
    reasons = [document(reason) for reason in explanation.reasons]
    return document(explanation) | {"summary": explanation.summary, "reasons": reasons}


def show_explanation(out: "Console", job_type: str, explanation: "Explanation") -> None:
    """An explanation for a person: a line per reason, numbered where there are several."""
    from rich.table import Table

    status = styled(explanation.status)
    out.print(f"[bold]{plain(job_type)}[/] {explanation.job_id}  {status}")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for reason in explanation.reasons:
        colour = "green" if reason.kind.value in CALM else "yellow"
        name = reason.kind.value.replace("_", " ")
        grid.add_row(f"[{colour}]{name}[/]", _with_commands(reason.sentence))
    out.print(grid)


def _with_commands(sentence: str) -> str:
    """The sentence with what is to be typed standing out."""
    parts = plain(sentence).split("`")
    return "".join(f"[bold]{part}[/]" if n % 2 else part for n, part in enumerate(parts))

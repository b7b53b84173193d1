"""`penstock jobs tree`: a job with all that it waits for and all that waits for it."""

from typing import TYPE_CHECKING, Any

from penstock.cli.output import plain, styled
from penstock.client.family import MAX_JOBS
from penstock.model.clock import iso

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.client.family import Family
    from penstock.store.contract import Dependency


def show_tree(out: "Console", family: "Family") -> None:
    """One tree per job that waits for nobody; a job with several parents is written out once."""
    from rich.tree import Tree

    written: set[str] = set()
    for root in sorted(family.roots):
        tree = Tree(_line(family, root, ""))
        todo = [(root, tree)]
        while todo:
            job_id, branch = todo.pop()
            if job_id in written:
                branch.label = f"{branch.label} [dim](see above)[/]"
                continue
            written.add(job_id)
            found = sorted(family.children(job_id).items())
            lines = [
                (
                    child_id,
                    branch.add(_line(family, child_id, ", ".join(filter(None, map(_edge, edges))))),
                )
                for child_id, edges in found
            ]
            todo += reversed(lines)
        out.print(tree)
    if family.more:
        out.print(f"[dim]There are more than {MAX_JOBS:,} jobs; these are the nearest.[/]")


def tree_document(family: "Family") -> dict[str, Any]:
    """The same for a script."""
    return {
        "id": family.asked,
        "jobs": [
            {"id": job_id, "type": type_, "status": status}
            for job_id, (type_, status) in sorted(family.jobs.items())
        ],
        "edges": [edge_document(edge) for edge in family.edges.values()],
        "more": family.more,
    }


def edge_document(edge: "Dependency") -> dict[str, Any]:
    """An edge as a script wants to read it."""
    from msgspec.structs import asdict

    closed_at = None if edge.closed_at is None else iso(edge.closed_at)
    ends = {"child_id": edge.child_id, "outcome": edge.outcome, "closed_at": closed_at}
    return asdict(edge.edge) | ends


def _line(family: "Family", job_id: str, words: str) -> str:
    type_, status = family.jobs[job_id]
    name = plain(type_ or "?")
    shown = f"[bold]{name} {job_id}[/]" if job_id == family.asked else f"{name} {job_id}"
    state = styled(status) if status else "[dim]pruned[/]"
    return f"{shown} {state}" + (f" [dim]{words}[/]" if words else "")


_WORDS = {"completion": "whatever its end", "order": "in line"}  # success needs no word


def _edge(edge: "Dependency") -> str:
    """What an edge passes on or asks for, in a word or two."""
    if edge.edge.condition is not None:
        return f"if {plain(edge.edge.condition)}"
    if edge.edge.argument is not None:
        place = "" if edge.edge.position is None else f"\\[{edge.edge.position}]"
        return f"as {plain(edge.edge.argument)}{place}"
    return _WORDS.get(edge.edge.kind, "")

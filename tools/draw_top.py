"""Draws docs/pictures/top.svg: `penstock top` on a busy afternoon."""

import re
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from rich.console import Console

from penstock.cli.top.state import Panel, Snapshot, State
from penstock.cli.top.view import screen
from penstock.model.clock import from_iso
from penstock.model.controls import Pause, PauseScope
from penstock.model.ids import derived_id
from penstock.model.job import Job
from penstock.model.states import Status
from penstock.store.contract import DeadLetter, QueueDepth, Resolution, Window, WorkerInfo

T = TypeVar("T", bound=Struct)

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "top.svg"
NOW = from_iso("2026-06-01T14:05:07Z")
WIDTH, HEIGHT = 110, 26
RATES = (31, 34, 38, 35, 42, 47, 44, 52, 58, 55, 61, 64, 58, 49, 41, 22, 9, 14, 38, 57, 66, 71, 68)


def example() -> Snapshot:
    """A made-up moment with something in every panel."""
    return Snapshot(
        at=NOW,
        name="work.db",
        queues=[
            queue("default", queued=48, running=6, pending=12, oldest_ms=850),
            queue("invoices", queued=0, running=1, pending=400),
            queue("mail", queued=1_284, running=8, failed=17, oldest_ms=41_000),
            queue("thumbnails", queued=310, running=0, paused=3, oldest_ms=754_000),
        ],
        workers=[
            worker("web-1", pid=4_117, running=8, cpu=71, memory=143),
            worker("web-2", pid=4_118, running=7, cpu=64, memory=139),
            worker("batch", pid=902, running=0, cpu=0, memory=88, silent_ms=47_000),
        ],
        running=[
            running("export", "invoices", 192_000, 64.0, "page 640 of 1,000"),
            running("newsletter", "mail", 8_300, 12.5, "1,250 of 10,000 sent"),
            running("resize", "default", 900),
            running("mail", "mail", 240),
        ],
        dead=[
            dead("charge", 12_000, "CardDeclined: the bank refused card ending in 4242"),
            dead("mail", 95_000, "SMTPRecipientsRefused: no such mailbox"),
            dead("export", 1_860_000, "TimeoutError: the handler did not finish within 300 s."),
        ],
        pauses=[
            Pause(
                scope=PauseScope.QUEUE,
                name="thumbnails",
                reason="disk is being replaced",
                paused_by="ada",
                created_at=NOW - 754_000,
            )
        ],
        total=window(),
        completed=[
            ((NOW // 10_000 - place) * 10_000, rate * 10.0)
            for place, rate in enumerate((48, *reversed(RATES)))
        ],
    )


def queue(
    name: str,
    *,
    queued: int,
    running: int,
    pending: int = 0,
    failed: int = 0,
    paused: int = 0,
    oldest_ms: int | None = None,
) -> QueueDepth:
    """A queue and how much stands in it."""
    return QueueDepth(
        queue=name,
        pending=pending,
        queued=queued,
        in_progress=running,
        failed=failed,
        paused=paused,
        oldest_queued_ms=oldest_ms,
    )


def worker(
    name: str, *, pid: int, running: int, cpu: float, memory: float, silent_ms: int = 3_200
) -> WorkerInfo:
    """A worker as last heard of."""
    return WorkerInfo(
        owner=f"{name}:{pid}",
        name=name,
        node=name,
        pid=pid,
        queues=None,
        types=("mail",),
        concurrency=8,
        running=running,
        completed=10_000,
        failed=20,
        cpu_percent=cpu,
        memory_mb=memory,
        poll_age_ms=0,
        started_at=NOW - 7_200_000,
        heartbeat_at=NOW - silent_ms,
        heartbeat_age_ms=silent_ms,
    )


def running(
    type_: str, queue: str, for_ms: int, percent: float | None = None, message: str | None = None
) -> Job:
    """A job under way."""
    known: dict[str, Any] = {
        "id": derived_id(NOW - for_ms, type_),
        "type": type_,
        "queue": queue,
        "category": "general",
        "status": Status.IN_PROGRESS,
        "priority": 5,
        "payload": "{}",
        "attempts": 0,
        "max_retries": 3,
        "started_at": NOW - for_ms,
        "progress_percent": percent,
        "progress_message": message,
        "tags": (),
        "cancel_requested_at": None,
    }
    return filled(Job, None, known)


def dead(type_: str, ago_ms: int, error: str) -> DeadLetter:
    """A dead letter."""
    known: dict[str, Any] = {
        "job_id": derived_id(NOW - ago_ms, type_),
        "type": type_,
        "queue": "default",
        "reason": "unknown",
        "error": error,
        "resolution": Resolution.PENDING,
        "created_at": NOW - ago_ms,
    }
    return filled(DeadLetter, None, known)


def window() -> Window:
    """The last five minutes."""
    known: dict[str, Any] = {
        "type": "",
        "queue": "",
        "span_ms": 300_000,
        "completed": 14_000,
        "success_rate": 0.987,
        "duration_p50_ms": 38.0,
        "duration_p95_ms": 412.0,
    }
    return filled(Window, 0, known)


def filled(kind: type[T], empty: Any, known: dict[str, Any]) -> T:
    """A record of which the screen shows only a few fields."""
    fields: dict[str, Any] = dict.fromkeys(kind.__struct_fields__, empty)
    return kind(**fields | known)


def picture() -> str:
    """The screen as SVG, in whatever monospaced font the reader has."""
    out = Console(record=True, width=WIDTH, height=HEIGHT, force_terminal=True, file=StringIO())
    state = State(panel=Panel.QUEUES, chosen={Panel.QUEUES: "mail"})
    out.print(screen(example(), state, WIDTH, HEIGHT))
    drawn = out.export_svg(title="penstock top", unique_id="top")
    drawn = re.sub(r"\s*@font-face \{.*?\}\n|\s*<!--.*?-->", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"font-family: Fira Code, ", "font-family: ", drawn)
    return "\n".join(line.rstrip() for line in drawn.splitlines() if line.strip()) + "\n"


def main() -> None:
    """Draw it."""
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), "utf-8")
    print(f"wrote {PICTURE.relative_to(PICTURE.parents[2])}")


if __name__ == "__main__":
    main()

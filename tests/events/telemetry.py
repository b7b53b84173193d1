"""An application of events alone, for processes that load it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock import Penstock
from penstock.events.event import Event, Session

app = Penstock()


@app.consumer(name="lines", partitions=8, workers=2)
class Lines:
    """Writes the number of every event into the file of its session; `broken` makes it fail."""

    def apply(self, tx: Any, events: Sequence[Event]) -> None:
        if any(event.payload.get("bad") for event in events) and Path("broken").exists():
            raise ValueError("it is broken")
        for event in events:
            with Path(f"{event.session_id}.txt").open("a") as file:
                file.write(f"{event.payload.get('n')} {os.getpid()}\n")

    def reset(self, tx: Any, session: Session) -> None:
        Path(f"{session.session_id}.txt").unlink(missing_ok=True)

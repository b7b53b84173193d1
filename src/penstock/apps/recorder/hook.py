"""The hook: an assistant runs it at every event, gives it JSON, and must not notice.

It reads, sanitises, writes one commit into the recorder's own file and is gone. If the file is
locked, missing, full or of another version, a sanitised line goes to the spool instead. It waits
for nobody, prints nothing (`{}` where an assistant demands JSON) and always ends with 0.
"""

import os
import sys

TYPE_CHECKING = False  # not from typing, whose import a disabled hook need not pay

if TYPE_CHECKING:
    from penstock.apps.recorder.captured import Captured

DISABLED = "PENSTOCK_HOOK_DISABLED"
ANSWERS = {"gemini_cli": b"{}", "antigravity": b"{}"}
MOST_READ = 64 << 20
MOST_FLUSHED = 256 << 10
"""A spool of up to so many bytes is flushed by the next hook; a longer one by a pass."""


def main(words: "list[str] | None" = None) -> None:
    """Do all of it for `hook.py PLATFORM [EVENT] [JSON]`, and end the process."""
    platform, *rest = (sys.argv[1:] if words is None else words) or ["unknown"]
    try:
        if not os.environ.get(DISABLED):
            record(platform, rest)
    except BaseException:
        pass
    finally:
        _answer(platform)
        # What is open needs no farewell: all that was written is on disk.
        os._exit(0)


def _answer(platform: str) -> None:
    try:  # noqa: SIM105 - contextlib takes longer to load than all that is done here
        os.write(1, ANSWERS.get(platform, b""))
    except OSError:
        pass


def record(platform: str, words: list[str]) -> None:
    """Capture what the hook was told, in the file or in the spool."""
    from time import time_ns

    now = time_ns() // 1_000_000
    captured, version = captured_of(platform, words, now)
    try:
        _write(captured, version, now)
    except Exception:
        from penstock.apps.recorder import home, spool

        home.make_home()
        spool.append(spool.line_of(captured))


def captured_of(platform: str, words: list[str], now: int) -> "tuple[Captured, str]":
    """What the hook was told, sanitised, and by which version of the rules."""
    from penstock.apps.recorder.capture import capture, cleaner, stub
    from penstock.apps.recorder.light import loads
    from penstock.apps.recorder.platforms import value

    hook_type, payload = words[0] if words else "", None
    try:
        given = words[-1].encode() if words and words[-1].startswith("{") else _read()
        payload = loads(given)
        clean, version = cleaner(str(value(payload, "session_id")))
        return capture(platform, hook_type, payload, now, clean), version
    except Exception as error:
        problem = f"it could not be read or made safe ({type(error).__name__})"
        return stub(platform, hook_type, payload, now, problem), ""


def _read() -> bytes:
    """All of the standard input, but no more than is kept of it."""
    parts, size = [], 0
    while part := os.read(0, 1 << 20):
        size += len(part)
        if size <= MOST_READ:
            parts.append(part)
    return b"".join(parts)


def _write(captured: "Captured", version: str, now: int) -> None:
    """Write it into the file, behind what waits in the spool; raise if that cannot be now."""
    from penstock.apps.recorder import home, spool

    path = home.place(home.DATABASE)
    os.stat(path)  # an installation that lives elsewhere has none: everything is forwarded
    from penstock.apps.recorder.local import BUSY_MS, LocalFile

    # While something waits in the spool, somebody has waited for the file in vain.
    file = LocalFile(path, version, 0 if spool.holds_any() else BUSY_MS)
    _open.append(file)
    while spool.holds_any():
        taken = spool.taken()
        if taken is None:
            raise BlockingIOError("what waits in the spool comes first")
        with taken:
            if taken.size > MOST_FLUSHED:
                raise BlockingIOError("what waits in the spool comes first, and is too much")
            file.write(taken.events(), now)
            taken.done()
    file.write([captured], now)


_open: list[object] = []
"""Files that stay open: who closes one last tidies it up, which takes longer than the commit."""

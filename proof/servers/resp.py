"""Just enough of the protocol of Redis to ask a server that may not be ready yet."""

import socket
from contextlib import closing
from pathlib import Path

PATIENCE_SECONDS = 5.0


def ask(path: Path, *words: str) -> bytes:
    """Send one command over a unix socket and return the raw answer, without its length."""
    with closing(socket.socket(socket.AF_UNIX)) as line:
        line.settimeout(PATIENCE_SECONDS)
        line.connect(str(path))
        parts = [word.encode() for word in words]
        request = b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        line.sendall(b"*%d\r\n%s" % (len(parts), request))
        with line.makefile("rb") as answers:
            first = answers.readline()
            return answers.read(int(first[1:])) if first.startswith(b"$") else first

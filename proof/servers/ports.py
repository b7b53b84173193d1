"""Ports for servers on loopback."""

import random
import socket
from contextlib import closing

# Below the range that systems hand out to clients, so that a port is still free at a restart.
LOWEST, HIGHEST = 15_000, 32_000
_handed_out: set[int] = set()


def free_port() -> int:
    """A port nobody listens on, and none that this process was given before."""
    chance = random.SystemRandom()
    while True:
        port = chance.randint(LOWEST, HIGHEST)
        if port in _handed_out:
            continue
        with closing(socket.socket()) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _handed_out.add(port)
        return port

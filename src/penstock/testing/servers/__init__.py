"""Real servers for tests and benchmarks, started from the wheels that carry their programs.

They listen on loopback and on a unix socket, stop with the process that started them, even when
that is killed, and need neither a network nor an installed server.
"""

from penstock.testing.servers.cluster import ValkeyCluster
from penstock.testing.servers.databases import create_database, drop_database
from penstock.testing.servers.postgres import PostgresServer
from penstock.testing.servers.process import ServerDidNotStart
from penstock.testing.servers.redis import RedisServer
from penstock.testing.servers.wheels import MissingWheel

__all__ = [
    "MissingWheel",
    "PostgresServer",
    "RedisServer",
    "ServerDidNotStart",
    "ValkeyCluster",
    "create_database",
    "drop_database",
]

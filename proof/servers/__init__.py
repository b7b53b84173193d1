"""Real servers for tests and benchmarks, started from the wheels that carry their programs.

They listen on loopback and on a unix socket, stop with the process that started them, even when
that is killed, and need neither a network nor an installed server.
"""

from proof.servers.cluster import ValkeyCluster
from proof.servers.databases import create_database, drop_database
from proof.servers.postgres import PostgresServer
from proof.servers.process import ServerDidNotStart
from proof.servers.redis import RedisServer
from proof.servers.wheels import MissingWheel

__all__ = [
    "MissingWheel",
    "PostgresServer",
    "RedisServer",
    "ServerDidNotStart",
    "ValkeyCluster",
    "create_database",
    "drop_database",
]

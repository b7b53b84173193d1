"""What somebody who holds the store itself can do to the audit log."""

from contextlib import closing

import apsw
import psycopg

from tests.support.places import Place
from tests.support.redis_raw import RawKeys


def change_actor(place: Place, seq: int, was: str, actor: str) -> None:
    """Have an entry name somebody else, past the store's own ways."""
    if place.kind == "sqlite":
        with closing(apsw.Connection(place.url.removeprefix("sqlite:///"))) as file:
            file.execute("UPDATE audit_log SET actor = ? WHERE seq = ?", (actor, seq))
    elif place.kind == "valkey":
        with closing(RawKeys(place.url)) as raw:
            [entry] = raw.ask("ZRANGEBYSCORE", "audit", seq, seq)
            raw.ask("ZREM", "audit", entry)
            raw.ask("ZADD", "audit", seq, entry.replace(was.encode(), actor.encode()))
    else:
        with psycopg.connect(place.url) as connection:
            connection.execute(
                "UPDATE penstock.audit_log SET actor = %s WHERE seq = %s", (actor, seq)
            )

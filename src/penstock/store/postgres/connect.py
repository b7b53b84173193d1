"""From a URL to connections: where the server is, who we are there, and how long we wait."""

import random
import re
import select
import time
from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import parse_qsl, quote, urlencode

import psycopg
from msgspec import Struct
from psycopg import pq, sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.string import TextLoader

from penstock.model.errors import InvalidOption
from penstock.model.redact import without_password
from penstock.store.postgres.errors import is_full, translated
from penstock.store.postgres.queries import queries

SCHEMES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "penstock"
STATEMENT_MS = 30_000
LOCK_MS = 10_000
IDLE_MS = 30_000
PREPARE_AFTER = 5
AGAIN_SECONDS = (0.05, 0.25)
PATIENCE_SECONDS = 30.0
# A dead peer is noticed well within a lease.
_DEFAULTS: dict[str, str | int] = {
    "application_name": "penstock",
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
# Room for `_worker` and `_tenant` behind it: names have 63 bytes on the server.
_SCHEMA = re.compile(r"(?!pg_)[A-Za-z_][A-Za-z0-9_-]{0,54}")
_READABLE = (
    "one that PostgreSQL can read; in a user name or a password write special characters "
    "as %40 for @, %2F for / and so on"
)
_NOW = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

Connection = psycopg.Connection[tuple[Any, ...]]


class Address(Struct, frozen=True, kw_only=True):
    """Where an installation is: the server, the database, the schema, and whose rows we see."""

    url: str
    name: str
    options: dict[str, str | int]
    schema: str = DEFAULT_SCHEMA
    tenant: str | None = None

    @property
    def worker_role(self) -> str:
        """The role that may do jobs and change no table."""
        return f"{self.schema}_worker"

    @property
    def tenant_role(self) -> str:
        """The role that sees one tenant."""
        return f"{self.schema}_tenant"

    def begin(
        self, *, read_only: bool = False, lock_ms: int = LOCK_MS, in_session: bool = False
    ) -> bytes:
        """What begins a transaction; the last answer is the server's time in milliseconds.

        Within a `session` of our own, it need not set again what that has set.
        """
        level = " ISOLATION LEVEL REPEATABLE READ READ ONLY" if read_only else ""
        steps = [f"BEGIN{level}", *self.settings(lock_ms), f"SELECT {_NOW}, {_durable('true')}"]
        if in_session:
            waits = [] if lock_ms == LOCK_MS else [f"SET LOCAL lock_timeout = {lock_ms}"]
            steps = [f"BEGIN{level}", *waits, f"SELECT {_NOW}"]
        return "; ".join(steps).encode()

    def session(self) -> bytes:
        """What a connection sets once that nobody else ever gets."""
        steps = [step.replace("SET LOCAL", "SET") for step in self.settings()]
        return "; ".join((*steps, f"SELECT {_durable('false')}")).encode()

    def settings(self, lock_ms: int = LOCK_MS) -> list[str]:
        """What every transaction sets for itself alone: behind a pooler the next is another's."""
        steps = [
            f"SET LOCAL search_path = {quoted(self.schema)}, pg_temp",
            f"SET LOCAL statement_timeout = {STATEMENT_MS}",
            f"SET LOCAL lock_timeout = {lock_ms}",
            f"SET LOCAL idle_in_transaction_session_timeout = {IDLE_MS}",
        ]
        if self.tenant is not None:
            steps.append(f"SET LOCAL ROLE {quoted(self.tenant_role)}")
            tenant = sql.Literal(self.tenant).as_string(None)
            steps.append(f"SET LOCAL penstock.tenant = {tenant}")
        return steps


def address_of(url: str) -> Address:
    """Read a URL: `postgresql://user:secret@host:5432/database?schema=mail&tenant=acme`."""
    shown = without_password(url)
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in SCHEMES:
        raise InvalidOption("url", shown, "one that starts with postgresql://")
    base, _, query = url.partition("?")
    given = parse_qsl(query, keep_blank_values=True)
    ours = {name: value for name, value in given if name in ("schema", "tenant")}
    theirs = [(name, value) for name, value in given if name not in ours]
    _refuse_unknown(shown, theirs)
    schema = ours.get("schema", DEFAULT_SCHEMA)
    tenant = ours.get("tenant")
    if not _SCHEMA.fullmatch(schema):
        expected = "a name of up to 55 letters, digits, _ and -, which does not begin with pg_"
        raise InvalidOption("schema", schema, expected)
    if tenant is not None and (not tenant or "\0" in tenant):
        raise InvalidOption("tenant", tenant, "the name of a tenant")
    return Address(
        url=url,
        name=shown,
        options=_DEFAULTS | _libpq_options(shown, base, theirs),
        schema=schema,
        tenant=tenant,
    )


def connect(address: Address, *, patience: float = 0) -> Connection:
    """A connection without a transaction, on which documents are read as the text they are.

    Where the server has none left, it is asked again for so many seconds.
    """
    with translated(address.name):
        connection = _connected(address, patience)
        for kind in ("json", "jsonb"):
            connection.adapters.register_loader(kind, TextLoader)
        if is_direct(connection):
            connection.prepare_threshold = PREPARE_AFTER
        return connection


def _connected(address: Address, patience: float) -> Connection:
    deadline = time.monotonic() + patience
    while True:
        try:
            return psycopg.connect(
                **cast("dict[str, Any]", address.options), autocommit=True, prepare_threshold=None
            )
        except psycopg.OperationalError as error:
            if not is_full(error) or time.monotonic() >= deadline:
                raise
        time.sleep(random.uniform(*AGAIN_SECONDS))


def answer(connection: Connection, query: str, **bindings: Any) -> Any:
    """The first value that a named query gives, outside of any operation of the store."""
    found = connection.execute(queries()[query], bindings).fetchone()
    return None if found is None else found[0]


def is_direct(connection: Connection) -> bool:
    """Whether no pooler is in between, which shares sessions and so forgets what we prepare."""
    return bool(answer(connection, "backend_pid") == connection.info.backend_pid)


def readable(files: Iterable[int], seconds: float | None) -> set[int]:
    """Which of them have something to say, as soon as one has."""
    # Not `select`, which can look at no file beyond the first 1,024.
    waiting = select.poll()
    for file in files:
        waiting.register(file, select.POLLIN)
    return {file for file, _ in waiting.poll(None if seconds is None else seconds * 1000)}


def _refuse_unknown(shown: str, options: list[tuple[str, str]]) -> None:
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()} | {"ssl"}
    for name, _ in options:
        if "@" in name:
            raise InvalidOption("url", shown, _READABLE)
        if name not in known:
            expected = f"one without ?{name}=, which is no option of penstock or PostgreSQL"
            raise InvalidOption("url", shown, expected)


def _libpq_options(shown: str, base: str, options: list[tuple[str, str]]) -> dict[str, str | int]:
    query = f"?{urlencode(options, quote_via=quote)}" if options else ""
    try:
        # What libpq says of a bad URL may hold a part of the password.
        read = conninfo_to_dict(f"{base}{query}")
    except psycopg.ProgrammingError:
        raise InvalidOption("url", shown, _READABLE) from None
    if not all(port.isdigit() for port in str(read.get("port") or "0").split(",") if port):
        raise InvalidOption("url", shown, _READABLE)
    return {name: value for name, value in read.items() if value is not None}


def _durable(local: str) -> str:
    """Raised where the server's default would lose what was acknowledged, and never lowered."""
    return (
        "set_config('synchronous_commit', CASE current_setting('synchronous_commit') "
        f"WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, {local})"
    )


def quoted(identifier: str) -> str:
    """A name as SQL may contain it."""
    return sql.Identifier(identifier).as_string(None)


def lend(address: Address) -> Connection:
    """A connection to the store's database; the URL's tenant sees no rows of others on it."""
    with translated(address.name):
        connection = psycopg.connect(**cast("dict[str, Any]", address.options))
        try:
            _prepare(connection, address)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: Connection, address: Address) -> None:
    direct = is_direct(connection)
    if not direct:
        connection.prepare_threshold = None
    if address.tenant is not None:
        if not direct:
            # What a session sets for itself, a pooler would hand on to whoever comes next.
            expected = "one that leads to the server and not to a pooler, if it names a tenant"
            raise InvalidOption("url", address.name, expected)
        role = sql.Identifier(address.tenant_role)
        connection.execute(sql.SQL("SET ROLE {}").format(role))
        tenant = sql.Literal(address.tenant)
        connection.execute(sql.SQL("SET penstock.tenant = {}").format(tenant))
    connection.commit()

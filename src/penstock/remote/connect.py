"""The way to a server: `penstock.connect("https://jobs.example.com", token="pk_…")`."""

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import urlsplit

from penstock.app.sync import Sync
from penstock.model.errors import InvalidOption, MissingExtra
from penstock.model.options import check_seconds
from penstock.model.redact import without_password

if TYPE_CHECKING:
    from penstock.app.after import After, Input, Parent
    from penstock.app.handle import JobHandle
    from penstock.app.options import AwaitingFields
    from penstock.app.penstock import Penstock
    from penstock.model.dependency import Edge
    from penstock.model.explain import Explanation
    from penstock.operate.check_payloads import Checked, PayloadCheck
    from penstock.operate.health import Health
    from penstock.operate.stats import Stats
    from penstock.remote.client import Remote
    from penstock.store.contract import Execution, LogLine, WorkerInfo


class SyncRemote(Sync):
    """`remote.sync`; anything else runs through `remote.sync.run(remote.dead.groups())`."""

    def __init__(self, remote: "Remote") -> None:
        super().__init__(remote)
        self._remote = remote

    def ask(
        self, method: str, path: str, document: Any = None, *, repeatable: bool | None = None
    ) -> Any:
        """Ask a route of an extension."""
        return self.run(self._remote.ask(method, path, document, repeatable=repeatable))

    def enqueue_payload(
        self, type_name: str, payload: str = "{}", **options: "Unpack[AwaitingFields]"
    ) -> "JobHandle[Any]":
        """Enqueue by name with arguments as JSON text."""
        return self.run(self._remote.enqueue_payload(type_name, payload, **options))

    def explain(self, job_id: str) -> "Explanation":
        """Every reason why a job does, or does not, run now."""
        return self.run(self._remote.explain(job_id))

    def executions(self, job_id: str) -> "list[Execution]":
        """Return the newest hundred executions of a job, oldest first."""
        return self.run(self._remote.executions(job_id))

    def logs(self, job_id: str, limit: int = 1000) -> "list[LogLine]":
        """The lines its handler logged."""
        return self.run(self._remote.logs(job_id, limit))

    def handle(self, job_id: str) -> "JobHandle[Any]":
        """Return a handle on a job enqueued elsewhere."""
        return self.run(self._remote.handle(job_id))

    def add_dependency(self, child: "Parent", *parents: "Parent | After | Input | Edge") -> None:
        """Have a job that has not been queued yet wait for more."""
        self.run(self._remote.add_dependency(child, *parents))

    def check_payloads(
        self, *, examples: int = 3, progress: "Checked | None" = None
    ) -> "PayloadCheck":
        """Whether everything that waits fits the types."""
        return self.run(self._remote.check_payloads(examples=examples, progress=progress))

    def workers(self) -> "list[WorkerInfo]":
        """Return all known workers, the freshest first."""
        return self.run(self._remote.workers())

    def stats(self, window: str = "1h") -> "Stats":
        """What happened in the last `15m`, `1h` or `7d`."""
        return self.run(self._remote.stats(window))

    def health(self) -> "Health":
        """How the installation is."""
        return self.run(self._remote.health())


_VISIBLE = re.compile(r"[!-~]+")


def connect(
    url: str,
    *,
    token: str | None = None,
    app: "Penstock | None" = None,
    timeout: float = 30,
    patience: float = 60,
    ca: str | None = None,
    plain_http: bool = False,
) -> "Remote":
    """The methods of an application, done by its server: `connect(url, token="pk_…", app=app)`.

    `app` brings the job types; its own store is not touched. A request may take `timeout` seconds,
    and one that can safely be sent again is, for `patience` seconds. `ca` is a file with the
    authorities to trust instead of the system's. A token goes to another machine only over https,
    unless `plain_http` says that the network in between is safe.
    """
    try:
        from penstock.remote.client import Remote
        from penstock.remote.wire import Wire
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("httpx"):
            raise
        raise MissingExtra("remote", error.name) from error
    check_seconds("timeout", timeout)
    check_seconds("patience", patience)
    is_local = _check(url, token, plain_http)
    wire = Wire(url, token, timeout=timeout, patience=patience, ca=ca, is_local=is_local)
    return Remote(wire, app)


def _check(url: str, token: str | None, plain_http: bool) -> bool:
    """Refuse what cannot be reached, or not safely; whether the server is on this machine."""
    given: object = url
    parts = urlsplit(url) if isinstance(given, str) else urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        shown = without_password(url) if isinstance(given, str) else given
        raise InvalidOption("url", shown, "the address of a server, such as https://example.com")
    if parts.username is not None or parts.password is not None:
        raise InvalidOption("url", without_password(url), "without an account; pass token=…")
    if token is not None and not _VISIBLE.fullmatch(str(token)):
        raise InvalidOption("token", "something else", "a token such as pk_…")
    is_local = _is_loopback(parts.hostname)
    if token is not None and parts.scheme == "http" and not (is_local or plain_http):
        expected = "https, or else everybody in between can read the token (plain_http=True)"
        raise InvalidOption("url", url, expected)
    return is_local


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

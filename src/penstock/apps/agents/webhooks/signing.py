"""Secrets and signatures of webhooks.

No secret is stored. One that Penstock makes is derived from one key of the installation and the
webhook's id, so that a copy of the database signs nothing; one that somebody brings along stands in
the settings by the place where it is kept, and a webhook names it.

Requests are signed as Standard Webhooks says (`webhook-id`, `webhook-timestamp` and
`webhook-signature`), with both secrets while one is being replaced, and once more by `X-Signature`,
the HMAC-SHA256 of the body alone.
"""

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.app.keys import NoKey, read_key
from penstock.apps.agents.files import find_folder, make_folder, sync_folder
from penstock.apps.agents.webhooks.records import Endpoint
from penstock.model.errors import NOT_SHOWN, InvalidOption
from penstock.model.redact import redact

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.agents.extension import WebhookSettings

PREFIX = "whsec_"
KEY_FILE = "webhooks.key"
KEY_BYTES = 32
USER_AGENT = "Penstock-Webhook/1.0"

DERIVED = "derived:"
NAMED = "secret:"
"""Before the name of a secret of the settings, in a header's value as well."""

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_MESSAGE = re.compile(r"[A-Za-z0-9_-]{1,128}")
_VALUE = re.compile(r"[\x20-\x7e]{0,2000}")
_OURS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "x-delivery-id",
        "x-signature",
        "x-webhook-id",
    }
)
MOST_HEADERS = 20


class Secrets:
    """The secrets of an installation's webhooks."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app
        self._settings: WebhookSettings = app.extensions.settings("agents").webhooks
        self._key: bytes | None = None

    def first(self, webhook_id: str) -> tuple[str, str]:
        """Return what a new webhook's row says of its secret, and the secret."""
        source = f"{DERIVED}1"
        return source, written(self._derived(webhook_id, source))

    def next(self, endpoint: Endpoint) -> tuple[str, str]:
        """Return the same for a webhook whose secret is replaced by one that we make."""
        used = [
            int(source.removeprefix(DERIVED))
            for source in (endpoint.secret, endpoint.former_secret or "")
            if source.startswith(DERIVED)
        ]
        source = f"{DERIVED}{max(used, default=0) + 1}"
        return source, written(self._derived(endpoint.id, source))

    def named(self, name: str, tenant: str) -> tuple[str, str]:
        """Return the same for a secret of the settings, which has to be this tenant's."""
        return f"{NAMED}{name}", self.read(name, tenant)

    def read(self, name: str, tenant: str) -> str:
        """Return a secret of the settings; InvalidOption if this tenant has none of the name."""
        secret = self._settings.secrets.get(name)
        if secret is None or secret.tenant != tenant:
            expected = f"a name under [penstock.agents.webhooks.secrets] of tenant {tenant!r}"
            raise InvalidOption("secret", name, expected)
        return read_key(secret.key)

    def signing(self, endpoint: Endpoint, now: int) -> list[bytes]:
        """Return the keys that a request is signed with: the secret's, and the former one's."""
        sources = [endpoint.secret]
        if endpoint.former_secret is not None and (endpoint.former_until or 0) > now:
            sources.append(endpoint.former_secret)
        return [self._bytes(endpoint, source) for source in sources]

    def _bytes(self, endpoint: Endpoint, source: str) -> bytes:
        if source.startswith(DERIVED):
            return self._derived(endpoint.id, source)
        return as_bytes(self.read(source.removeprefix(NAMED), endpoint.tenant_id))

    def _derived(self, webhook_id: str, source: str) -> bytes:
        if self._key is None:
            self._key = self._read_key()
        return hmac.digest(self._key, f"webhook {webhook_id} {source}".encode(), "sha256")

    def _read_key(self) -> bytes:
        place = self._settings.key
        if place:
            return read_key(place).encode()
        folder = find_folder(self._app)
        if folder is None:
            problem = 'name one: key = "env:NAME" under [penstock.agents.webhooks]'
            raise NoKey("a place beside this store", problem)
        return read_key(f"file:{_key_file(folder / KEY_FILE)}").encode()


def _key_file(path: Path) -> Path:
    """Make the file with the key of an installation, if it is not there; who is later uses it."""
    if not path.exists():
        make_folder(path.parent)
        part = path.with_name(f"{path.name}.{os.getpid()}")
        with open(os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w") as file:
            file.write(base64.b64encode(os.urandom(KEY_BYTES)).decode())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(part, path)
        except FileExistsError:
            pass
        finally:
            part.unlink()
        sync_folder(path.parent)
    return path


def written(key: bytes) -> str:
    """Write a key as receivers' libraries take it."""
    return f"{PREFIX}{base64.b64encode(key).decode()}"


def as_bytes(secret: str) -> bytes:
    """Read a secret: `whsec_` and base64, or any other text as it is."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(PREFIX) + "==")
    except ValueError as error:
        raise InvalidOption("secret", NOT_SHOWN, "base64 after whsec_") from error


def signatures(
    keys: Sequence[bytes], message_id: str, seconds: int, body: bytes
) -> list[tuple[str, str]]:
    """Return the headers of Standard Webhooks for a request."""
    signed = b".".join((message_id.encode(), str(seconds).encode(), body))
    made = (base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys)
    return [
        ("webhook-id", message_id),
        ("webhook-timestamp", str(seconds)),
        ("webhook-signature", " ".join(f"v1,{each}" for each in made)),
    ]


def plain_signature(keys: Sequence[bytes], body: bytes) -> str:
    """Return `X-Signature` where nobody brought one along."""
    return ", ".join(f"sha256={hmac.new(key, body, hashlib.sha256).hexdigest()}" for key in keys)


def check_ids(signature: str | None, message_id: str | None) -> None:
    """Refuse a signature or an id of a message that no header can hold."""
    if signature is not None and not _VALUE.fullmatch(signature):
        raise InvalidOption("signature", NOT_SHOWN, "printable ASCII on one line")
    if message_id is not None and not _MESSAGE.fullmatch(message_id):
        raise InvalidOption("messageId", message_id, "up to 128 letters, digits, - and _")


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse headers that are ours, that break a request, or that hold a secret in plain text."""
    if len(headers) > MOST_HEADERS:
        raise InvalidOption("headers", len(headers), f"at most {MOST_HEADERS}")
    for name, value in headers.items():
        lowered = name.lower()
        if not _NAME.fullmatch(name) or lowered in _OURS or lowered.startswith("webhook-"):
            raise InvalidOption("header", name, "a name of a header that is not ours")
        if not _VALUE.fullmatch(value):
            raise InvalidOption("header", name, "printable ASCII on one line")
        if not value.startswith(NAMED) and redact(f"{name}: {value}") != f"{name}: {value}":
            expected = "without a secret in plain text: write secret:NAME and keep it in "
            raise InvalidOption("header", name, f"{expected}[penstock.agents.webhooks.secrets]")

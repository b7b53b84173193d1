"""What tokens and users have in common."""

from penstock.model.bounds import MAX_NAME, MAX_TEXT
from penstock.model.errors import InvalidOption
from penstock.store.contract import Store


async def any_credentials(store: Store) -> bool:
    """Whether there is a token or a user."""
    for kind in ("token", "user"):
        if await store.records.list(kind, limit=1):
            return True
    return False


def checked_name(name: str) -> str:
    """Refuse a name that is none, or that a list could not show."""
    if not _is_plain(name, MAX_NAME):
        raise InvalidOption("name", name, f"plain text of at most {MAX_NAME} characters")
    return name


def checked_tenant(tenant_id: str | None) -> None:
    """Refuse an empty name: the audit log's entries about the installation have that one."""
    if tenant_id is not None and not _is_plain(tenant_id, MAX_TEXT):
        raise InvalidOption("tenant", tenant_id, "the name of a tenant; left out, all of them")


def _is_plain(text: str, longest: int) -> bool:
    return 0 < len(text) <= longest and text.isprintable()

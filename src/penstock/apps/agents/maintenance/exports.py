"""Files that were exported: each has its row before it is written, so that none is forgotten."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from penstock.apps.agents.files import folder_of
from penstock.model.ids import derived_id, id_time_ms
from penstock.model.not_found import NotFound

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.extension import Erasing

FOLDER = "exports"
PAGE = 100


class Export(Struct, frozen=True, kw_only=True):
    """An export: `data` of a tenant or a person, or of the `audit` log; how much it holds."""

    id: str
    tenant_id: str
    user_id: str | None
    kind: str
    file: str
    sha256: str | None
    bytes: int | None
    contents: dict[str, Any]
    status: str
    created_at: int
    ended_at: int | None


class ExportNotFound(NotFound):
    """An id that no export has."""

    def __init__(self, export_id: str) -> None:
        self.export_id = export_id
        super().__init__(f"No export has the id {export_id!r}; `app.agents.exports.list()` does.")


class Begun(Struct, frozen=True):
    """An export that is being written."""

    id: str
    path: Path


class Exported(Struct, frozen=True, kw_only=True):
    """What an export came to hold."""

    sha256: str
    bytes: int
    contents: dict[str, Any]


async def begin(
    app: "Penstock", job_id: str, kind: str, tenant: str, user: str | None, ending: str
) -> Begun:
    """Write down that a job exports something; the same for every run of the job."""
    export_id = derived_id(id_time_ms(job_id), "export", job_id)
    file = f"{FOLDER}/{kind}-{export_id}.{ending}"
    row = (export_id, tenant, user, kind, file)
    await app.transact(lambda tx: tx.agents.run("begin_export", (*row, tx.now)))
    path = folder_of(app) / file
    _unlink_parts(path)
    return Begun(export_id, path)


async def end(app: "Penstock", begun: Begun, exported: Exported) -> None:
    """Write down that it is there."""
    told = {
        "id": begun.id,
        "sha256": exported.sha256,
        "bytes": exported.bytes,
        "contents": msgspec.json.encode(exported.contents, order="deterministic").decode(),
    }
    await app.transact(lambda tx: tx.agents.run("end_export", {**told, "ended_at": tx.now}))


async def erase_exports(app: "Penstock", whose: "Erasing") -> int:
    """Delete the files that hold something of a tenant or a person, those half written too."""
    asked = {"tenant": whose.tenant, "person": whose.person, "limit": PAGE}
    erased = 0
    while rows := await app.read(lambda tx: tx.agents.rows("exports_holding", asked)):
        for export_id, file in rows:
            _unlink(folder_of(app) / str(file))
            await app.transact(partial(_forget, export_id=export_id))
            erased += 1
    return erased


def _forget(tx: Any, export_id: str) -> None:
    tx.agents.run("forget_export", (export_id,))


def _unlink(path: Path) -> None:
    path.unlink(missing_ok=True)
    _unlink_parts(path)


def _unlink_parts(path: Path) -> None:
    """Delete what somebody who was killed has left of a file."""
    for found in path.parent.glob(f"{path.name}.*"):
        found.unlink(missing_ok=True)


class Exports:
    """`app.agents.exports`: what was exported, and where it is."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app

    async def get(self, export_id: str, *, tenant: str | None = None) -> Export:
        """An export; ExportNotFound if there is none of this id, or it is another tenant's."""
        row = await self._app.read(lambda tx: tx.agents.row("export_by_id", (export_id,)))
        if row is None or (tenant is not None and row[1] != tenant):
            raise ExportNotFound(export_id)
        return _export(row)

    def path(self, export: Export) -> Path:
        """Where its file is."""
        return folder_of(self._app) / export.file

    async def delete(self, export_id: str, *, tenant: str | None = None) -> None:
        """Delete an export and its file."""
        export = await self.get(export_id, tenant=tenant)
        _unlink(self.path(export))
        await self._app.transact(partial(_forget, export_id=export_id))

    async def list(self, tenant: str | None = None, limit: int = 100) -> list[Export]:
        """All of them, or a tenant's, the newest first."""
        asked = {"tenant": tenant, "limit": limit}
        rows = await self._app.read(lambda tx: tx.agents.rows("exports", asked))
        return [_export(row) for row in rows]


def _export(row: tuple[Any, ...]) -> Export:
    told = dict(zip(Export.__struct_fields__, row, strict=True))
    return Export(**{**told, "contents": msgspec.json.decode(told["contents"])})

"""Why a client makes no copies here: the server does, of all its namespaces at one moment."""

from penstock.model.errors import NoBackup

ADVICE = (
    "run BGSAVE there and keep the file it writes (LASTSAVE tells when it is done), or copy this "
    "installation alone with `penstock move` while no worker runs"
)


def refuse_backup(url: str) -> NoBackup:
    """The error that says how a Redis or Valkey is backed up."""
    return NoBackup(url, ADVICE)

"""`penstock version`."""

import typer

from penstock.cli.output import JsonFlag, write_json


def version(as_json: JsonFlag = False) -> None:
    """Say which versions are at work."""
    import platform

    import apsw

    from penstock import __version__

    versions = {
        "penstock": __version__,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
    }
    if as_json:
        write_json(versions)
    else:
        typer.echo("  ".join(f"{name} {number}" for name, number in versions.items()))

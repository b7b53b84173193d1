"""The program `penstock`: its global options and its commands."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.audit import app as audit
from penstock.cli.breakers import app as breakers
from penstock.cli.check_payloads import check_payloads
from penstock.cli.dead import app as dead
from penstock.cli.doctor import doctor
from penstock.cli.enqueue import enqueue
from penstock.cli.followers import app as followers
from penstock.cli.health import health
from penstock.cli.jobs import app as jobs
from penstock.cli.limits import app as limits
from penstock.cli.move import move, reopen
from penstock.cli.output import JsonFlag, write_json
from penstock.cli.pauses import pause, pauses, resume
from penstock.cli.queues import app as queues
from penstock.cli.root import Root
from penstock.cli.schedules import app as schedules
from penstock.cli.server import server
from penstock.cli.session import Session, session
from penstock.cli.stats import stats
from penstock.cli.store import backup, erase, migrate, restore
from penstock.cli.tokens import app as tokens
from penstock.cli.top.command import top
from penstock.cli.torture import torture
from penstock.cli.up import up
from penstock.cli.users import app as users
from penstock.cli.worker import app as workers
from penstock.cli.worker import autoscale, worker


def say_version(asked: bool) -> None:
    """Say which version it is, for `penstock --version`, and leave."""
    if asked:
        from penstock import __version__

        typer.echo(f"penstock {__version__}")
        raise typer.Exit


def version(as_json: JsonFlag = False) -> None:
    """Show the versions of Penstock, Python and SQLite."""
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


def demo(
    ctx: typer.Context,
    seconds: Annotated[float, typer.Option(min=5, max=600, help="How long it runs.")] = 30,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a live screen.")] = False,
) -> None:
    """Watch jobs flow, retry, die and be rescued, on a temporary store (or --url)."""
    from penstock.demo.play import play

    raise typer.Exit(play(url=session(ctx).url, seconds=seconds, plain=plain))


RUN, LOOK, ALLOW = "Run jobs", "Look and act", "Access and audit"
KEEP, TRY = "Maintain the store", "Try and measure"

app = typer.Typer(
    name="penstock",
    cls=Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def root(
    ctx: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(
            help="The store, such as sqlite:///work.db (or PENSTOCK_URL).", show_default=False
        ),
    ] = None,
    dispatch: Annotated[
        str | None,
        typer.Option(
            help="A Redis beside PostgreSQL, such as redis://localhost (or PENSTOCK_DISPATCH).",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Settings in TOML (or PENSTOCK_CONFIG; penstock.toml if it is there).",
            show_default=False,
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    _: Annotated[
        bool,
        typer.Option("--version", callback=say_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Durable background jobs and events for Python. These options may stand anywhere."""
    if url is not None and not url.startswith("postgres"):
        dispatch = dispatch or ""  # that of the environment goes with the store of the environment
    ctx.obj = Session(url=url, dispatch=dispatch, config=config, debug=debug)


app.command("up", rich_help_panel=RUN)(up)
app.command("server", rich_help_panel=RUN)(server)
app.command("worker", rich_help_panel=RUN)(worker)
app.command("autoscale", rich_help_panel=RUN)(autoscale)
app.command("enqueue", rich_help_panel=RUN)(enqueue)
app.add_typer(jobs, name="jobs", rich_help_panel=LOOK)
app.add_typer(dead, name="dead", rich_help_panel=LOOK)
app.add_typer(schedules, name="schedules", rich_help_panel=LOOK)
app.add_typer(queues, name="queues", rich_help_panel=LOOK)
app.add_typer(workers, name="workers", rich_help_panel=LOOK)
app.add_typer(limits, name="limits", rich_help_panel=LOOK)
app.add_typer(breakers, name="breakers", rich_help_panel=LOOK)
app.add_typer(followers, name="followers", rich_help_panel=LOOK)
app.command("pause", rich_help_panel=LOOK)(pause)
app.command("resume", rich_help_panel=LOOK)(resume)
app.command("pauses", rich_help_panel=LOOK)(pauses)
app.command("top", rich_help_panel=LOOK)(top)
app.command("stats", rich_help_panel=LOOK)(stats)
app.command("doctor", rich_help_panel=LOOK)(doctor)
app.command("health", rich_help_panel=LOOK)(health)
app.command("check-payloads", rich_help_panel=LOOK)(check_payloads)
app.add_typer(tokens, name="tokens", rich_help_panel=ALLOW)
app.add_typer(users, name="users", rich_help_panel=ALLOW)
app.add_typer(audit, name="audit", rich_help_panel=ALLOW)
app.command("migrate", rich_help_panel=KEEP)(migrate)
app.command("backup", rich_help_panel=KEEP)(backup)
app.command("restore", rich_help_panel=KEEP)(restore)
app.command("erase", rich_help_panel=KEEP)(erase)
app.command("move", rich_help_panel=KEEP)(move)
app.command("reopen", rich_help_panel=KEEP)(reopen)
app.command("demo", rich_help_panel=TRY)(demo)
app.command("torture", rich_help_panel=TRY)(torture)
app.command("version", rich_help_panel=TRY)(version)


def main() -> None:
    """The entry point."""
    app(prog_name="penstock")

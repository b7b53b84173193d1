"""`penstock server`: the API and the dashboard of a store."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import name_list
from penstock.cli.root import Refused
from penstock.cli.session import bare_app, load, pass_on, run, session
from penstock.cli.worker import LogLevel

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.config import Settings
    from penstock.server.serve import Bind, ServerSpec

GREETING = "Penstock answers at {address} for {store}; Ctrl-C stops it."

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="MODULE:APP",
        help="The application, so that the server knows its job types.",
        show_default=False,
    ),
]
Host = Annotated[
    str | None,
    typer.Option(help="The address to listen on (or PENSTOCK_HOST).", show_default="127.0.0.1"),
]
Port = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65_535,
        help="The port; 0 takes a free one (or PENSTOCK_PORT).",
        show_default="8787",
    ),
]
Certificate = Annotated[
    Path | None, typer.Option("--tls-certificate", metavar="FILE", help="Serve HTTPS: PEM.")
]
Key = Annotated[
    Path | None, typer.Option("--tls-key", metavar="FILE", help="The certificate's key: PEM.")
]
Proxies = Annotated[
    list[str] | None,
    name_list(
        "--trust-proxy",
        metavar="A,B",
        help="Addresses of proxies whose X-Forwarded-For and -Proto are believed.",
        default="none",
    ),
]
RootPath = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="The path below which a proxy serves it, such as /penstock (or PENSTOCK_ROOT_PATH).",
        show_default="none",
    ),
]
OpenFlag = Annotated[bool, typer.Option("--open", help="Open the dashboard in a browser.")]
LogJson = Annotated[bool, typer.Option("--log-json", help="Log one JSON object per line.")]
AccessLog = Annotated[
    bool,
    typer.Option("--access-log", help="Log every request, without its query."),
]
Level = Annotated[LogLevel, typer.Option(help="The least severe messages to log.")]


def server(
    ctx: typer.Context,
    target: Target = None,
    host: Host = None,
    port: Port = None,
    certificate: Certificate = None,
    key: Key = None,
    proxies: Proxies = None,
    root_path: RootPath = None,
    upkeep: Annotated[
        bool, typer.Option("--upkeep", help="Run upkeep too, where no worker does.")
    ] = False,
    opens: OpenFlag = False,
    access_log: AccessLog = False,
    log_json: LogJson = False,
    log_level: Level = LogLevel.INFO,
) -> None:
    """Serve the API and the dashboard until SIGTERM or Ctrl-C."""
    app = served_app(ctx, target)
    bind = bind_of(app.settings, host, port, certificate, key, proxies, root_path)
    spec = server_spec(
        ctx,
        target,
        bind,
        upkeep=upkeep,
        greeting=GREETING,
        opens_browser=opens and has_screen(),
        access_log=access_log,
        log_json=log_json,
        log_level=log_level.value,
    )
    from penstock.server import process
    from penstock.server.serve import bind_socket

    raise typer.Exit(process.run(spec, run(bind_socket(app, bind))))


def served_app(ctx: typer.Context, target: str | None, *, reload: bool = False) -> "Penstock":
    """The application a server is for, once what serves it is known to be installed."""
    from importlib.util import find_spec

    from penstock.model.errors import MissingExtra

    for module in ("fastapi", "uvicorn", "jinja2"):
        if find_spec(module) is None:
            raise MissingExtra("server", module)
    if target is None:
        pass_on(session(ctx))
        return bare_app(ctx)
    return load(ctx, target, reload=reload)


def bind_of(
    settings: "Settings",
    host: str | None,
    port: int | None,
    certificate: Path | None,
    key: Path | None,
    proxies: list[str] | None,
    root_path: str | None,
) -> "Bind":
    """Where to listen: what the flags say, else the settings."""
    from penstock.server.serve import Bind

    chosen = settings.replace(
        host=host,
        port=port,
        tls_certificate=None if certificate is None else str(certificate),
        tls_key=None if key is None else str(key),
        trusted_proxies=",".join(proxies) if proxies else None,
        root_path=root_path,
    )
    if chosen.tls_key and not chosen.tls_certificate:
        raise Refused("A key alone is no use; name its certificate with --tls-certificate.")
    for file in filter(None, (chosen.tls_certificate, chosen.tls_key)):
        if not Path(file).is_file():
            raise Refused(
                f"There is no file {file}; --tls-certificate and --tls-key name PEM files."
            )
    return Bind(
        host=chosen.host,
        port=chosen.port,
        certificate=chosen.tls_certificate,
        key=chosen.tls_key,
        proxies=chosen.trusted_proxies,
        root_path=chosen.root_path,
    )


def has_screen() -> bool:
    """Whether a browser would have somewhere to show itself."""
    import os

    if sys.platform != "linux":
        return True
    return any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def server_spec(
    ctx: typer.Context,
    target: str | None,
    bind: "Bind",
    *,
    access_log: bool = False,
    **fields: Any,
) -> "ServerSpec":
    """What a server process is told."""
    from penstock.server.serve import ServerSpec

    chosen = session(ctx)
    settings = {"dispatch": chosen.dispatch, "access_log": access_log or None}
    return ServerSpec(target=target, url=chosen.url, settings=settings, bind=bind, **fields)

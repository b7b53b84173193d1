"""A small extension with one of every part, for tests that mount it."""

import os
from collections.abc import AsyncIterator
from typing import Annotated, Any

from msgspec import Struct

from penstock import Blueprint, Penstock
from penstock.extension import (
    Again,
    Body,
    Command,
    Concern,
    Extension,
    Follower,
    Group,
    JobChange,
    Measured,
    Metric,
    Page,
    Pass,
    Request,
    Route,
    Shown,
    Tile,
)
from penstock.model.alert import Reading
from penstock.model.alert_rules import Measure, Rule, Severity, Unit
from penstock.model.errors import InvalidOption
from penstock.model.not_found import NotFound
from penstock.operate.health import Check, HealthStatus
from penstock.service import Service

blueprint = Blueprint()
watered: list[str] = []
"""What was done, in order; tests empty it."""


@blueprint.job(name="garden.water")
async def water(bed: str) -> str:
    watered.append(bed)
    return bed


class Bed(Struct, kw_only=True):
    """A bed of the garden."""

    name: str
    plants: int = 1


class Where(Struct, kw_only=True):
    """Which beds."""

    plants: int | None = None
    named: str = ""


class NoSuchBed(NotFound):
    """A bed that is not there."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"There is no bed {name!r}.")


async def tend(app: Penstock) -> Again | int:
    watered.append("tended")
    return Again(5) if watered.count("tended") == 1 else 0


class Gardener(Service):
    """Notes that it was started and stopped."""

    name = "gardener"

    def __init__(self, app: Penstock) -> None:
        super().__init__(3600)

    async def run_once(self) -> None:
        watered.append("gardener")


async def beds(
    app: Penstock,
    plants: Annotated[int, "At least so many plants."] = 0,
    everything: Annotated[bool, "--all", "Empty ones too."] = False,
) -> list[dict[str, Any]]:
    """List the beds."""
    rows = [{"name": "rose", "state": "failed", "plants": 1200, "said": "[red]thorns"}]
    rows += [{"name": "bare", "state": "paused", "plants": 0, "said": ""}] if everything else []
    return [row for row in rows if row["plants"] >= plants]  # type: ignore[operator]


async def plant(app: Penstock, actor: str, name: Annotated[str, "Which bed."]) -> Bed:
    """Plant a bed."""
    if name == "moor":
        raise NoSuchBed(name)
    watered.append(f"{actor.partition(':')[0]} planted {name}")
    await app.enqueue_payload("garden.water", f'{{"bed": "{name}"}}')
    return Bed(name=name)


async def inspect(app: Penstock) -> Shown:
    """See how it is."""
    return Shown(("All is green.", [{"bed": "rose"}]), {"green": True}, "One bed is dry.")


def never() -> None:
    raise AssertionError("a part was loaded that nobody asked for")


async def list_beds(request: Request) -> list[Bed]:
    """The beds there are."""
    where: Where = request.query
    found = [Bed(name="rose", plants=2), Bed(name="moor", plants=0)]
    return [bed for bed in found if where.plants in (None, bed.plants)]


async def put_bed(request: Request) -> Bed:
    """Make a bed."""
    if request.body.plants > 100:
        raise InvalidOption("plants", request.body.plants, "at most 100")
    watered.append(f"{request.actor} {request.tenant} {request.path['name']}")
    bed: Bed = request.body
    return bed


async def sow(request: Request) -> dict[str, int]:
    """Take many beds, one per line."""
    return {"beds": len(request.body), "plants": sum(bed.plants for bed in request.body)}


async def weigh(request: Request) -> bytes:
    """Take bytes, and answer with some."""
    return bytes(reversed(request.body))


async def export(request: Request) -> AsyncIterator[bytes]:
    """Answer piece by piece."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"name":"rose"}\n'
        yield b'{"name":"moor"}\n'

    return pieces()


async def wither(request: Request) -> None:
    """Break."""
    raise RuntimeError("no water")


async def show_beds(request: Request) -> dict[str, Any]:
    return {"beds": await list_beds_of(request), "status": request.query.get("status", "")}


async def list_beds_of(request: Request) -> list[Bed]:
    return [Bed(name="rose <b>", plants=2)]


async def show_bed(request: Request) -> dict[str, Any]:
    if request.path["name"] == "moor":
        raise NoSuchBed("moor")
    return {"name": request.path["name"]}


async def dig(request: Request) -> str:
    if request.form["bed"] == "moor":
        raise NoSuchBed("moor")
    watered.append(f"{request.actor} dug {request.form['bed']}")
    return f"{request.form['bed']} is dug."


async def count_beds(app: Penstock) -> int:
    return 1234


async def plants(app: Penstock) -> float:
    return 2500


async def broken(app: Penstock, *_: Any) -> Any:
    raise RuntimeError("no water")


async def concerns(app: Penstock) -> list[Concern]:
    return [Concern("warning", "Drought", "It is `dry`.", "garden")]


async def by_bed(app: Penstock) -> dict[tuple[str, str], float]:
    return {("rose", 'a"b'): 2, ("moor", "x"): 0}


async def dryness(app: Penstock, rule: Rule) -> Reading:
    return Reading(40 if rule.queue is None else 0, "mostly the roses")


async def soil(app: Penstock) -> Check:
    return Check(HealthStatus.DEGRADED, "The soil is dry.", {"water": 3})


async def tools(app: Penstock) -> Check:
    return Check(HealthStatus.UNHEALTHY, "The spade is missing.")


async def where(app: Penstock) -> str:
    """Say which store it is."""
    return app.settings.url


shed = Extension(
    name="shed",
    help="Tools.",
    home=lambda makes: os.environ["SHED"],
    commands=(Command(name="where", run=where, writes=True),),
    groups=(
        Group(name="spades", help="Spades alone.", commands=(Command(name="where", run=where),)),
    ),
)

garden = Extension(
    name="garden",
    title="Garden",
    help="Beds and what grows in them.",
    blueprint=blueprint,
    templates="tests.support.garden_pages",
    passes=(Pass(name="tend", every=60, run=tend),),
    services=(Gardener,),
    commands=(
        Command(name="beds", run=beds),
        Command(name="plant", run="tests.support.garden:plant", writes=True),
        Command(name="inspect", run=inspect),
    ),
    routes=(
        Route(method="GET", path="garden/beds", run=list_beds, query=Where, gives=list[Bed]),
        Route(
            method="PUT",
            path="garden/beds/{name}",
            run="tests.support.garden:put_bed",
            scope="operate",
            body=Body.JSON,
            takes=Bed,
            gives=Bed,
            limit=200,
            status=201,
        ),
        Route(
            method="POST",
            path="garden/sow",
            run=sow,
            scope="enqueue",
            body=Body.LINES,
            takes=Bed,
            limit=1 << 22,
        ),
        Route(
            method="POST",
            path="garden/weigh",
            run=weigh,
            scope="enqueue",
            whole=True,
            body=Body.RAW,
            media="application/x-protobuf",
            answers="application/x-protobuf",
        ),
        Route(method="GET", path="garden/export", run=export, answers="application/x-ndjson"),
        Route(method="POST", path="garden/wither", run=wither, scope="admin"),
    ),
    pages=(
        Page(
            path="garden",
            title="Beds",
            template="beds.html",
            show=show_beds,
            act=dig,
            count=count_beds,
        ),
        Page(path="garden/tools", title="Tools", template="bed.html", show=broken, whole=True),
        Page(path="garden/{name}", template="bed.html", show=show_bed),
    ),
    tiles=(Tile(title="Plants", figure=plants, path="garden"), Tile(title="Weeds", figure=broken)),
    concerns=concerns,
    metrics=(
        Metric(name="plants", help="Plants in all beds.", read=plants),
        Metric(name="beds", help="Plants by bed.", read=by_bed, labels=("bed", "kind")),
        Metric(name="rain", help="Rain that fell.", read=plants, counts=True),
        Metric(name="snow", help="Snow that fell.", read=broken),
    ),
    readings=(
        Measured(
            name="dryness",
            measure=Measure("how dry the soil is", Unit.PERCENT),
            read=dryness,
            page="garden",
        ),
    ),
    rules=(
        Rule(
            name="drought",
            metric="dryness",
            threshold=30,
            severity=Severity.CRITICAL,
            action="Water it.",
        ),
    ),
    checks={"soil": soil},
    doctor={"tools": tools},
)

needy = Extension(
    name="needy",
    needs="server",
    commands=(Command(name="look", run="no_such_module_here:look"),),
    routes=(Route(method="GET", path="needy", run="no_such_module_here:look"),),
)


async def write_down(app: Penstock, changes: list[JobChange]) -> None:
    watered.extend(change.status for change in changes)


followed = Extension(
    name="followed",
    followers=(Follower(name="diary", tell=write_down, statuses=("completed",)),),
)

"""`python -m proof.bench.memory`: how long it takes to consolidate 100,000 memories of one user.

Beside it stands what cannot be done without: embedding as many texts, and building a bare usearch
index of as many vectors with the same settings. Consolidation may take twice as long as both
together, in less than 1 GiB. Its job runs in a process of its own, by a worker, on a SQLite file
that another process has filled; the vector index is not built yet. A search is measured beside it.
"""

import argparse
import asyncio
import itertools
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy

from penstock.app.penstock import Penstock
from penstock.apps.agents.extension import VectorSettings
from penstock.apps.agents.memory.records import NewMemory
from penstock.apps.agents.vectors.embedder import WordLlama
from penstock.config import Settings
from penstock.testing import drain
from proof.bench.report import line, print_figures_only

NAMES = re.findall(
    r"\w+", "Ada Bert Carla Dora Emil Frida Gustav Hanna Ivo Jana Karl Lena Marta Nils Olga Paul"
)
THINGS = re.findall(
    r"\w+",
    "boat bike violin garden kitchen printer contract invoice report server database backup "
    "password project meeting budget recipe medicine ticket flight hotel dog cat parrot lamp "
    "roof cellar window heating tractor orchard beehive telescope camera",
)
PLACES = re.findall(
    r"\w+", "Porto Turin Graz Bergen Lyon Ghent Riga Split Cork Delft Trieste Uppsala Basel"
)
DONE = re.findall(
    r"\w+", "repaired sold bought lent cleaned painted lost found moved insured ordered measured"
)
SAID = (
    "{name} {done} the {thing} in {place}.",
    "In {place}, {name} {done} the {thing}.",
    "{name} {done} the {thing} in {place}, as planned.",
    "The {thing} in {place} was {done} by {name}.",
    "{name} says the {thing} in {place} is {done} now.",
)


def texts(count: int) -> list[str]:
    """Statements as agents keep them: a few about the same, most of them about something else."""
    chance = random.Random(17)
    found: list[str] = []
    for number in itertools.count():
        told = {
            "name": f"{chance.choice(NAMES)} {chance.choice(PLACES)[:3]}son",
            "thing": f"{chance.choice(THINGS)} {number}",
            "place": chance.choice(PLACES),
            "done": chance.choice(DONE),
        }
        for said in chance.sample(SAID, chance.choice((1, 1, 1, 2, 3))):
            found.append(said.format(**told))
            if len(found) == count:
                return found
    return found


def application(folder: str) -> Penstock:
    """The agent workers on a file of a folder."""
    own = {"folder": f"{folder}/agents", "schedules": False}
    return Penstock(
        f"sqlite:///{folder}/memory.db",
        extensions=["agents"],
        settings=Settings(extension={"agents": own}),
    )


def measure_floor(count: int) -> tuple[float, float, float]:
    """Seconds to embed texts and to build a bare index, and of the processors for both."""
    from usearch.index import Index

    said, embedder = texts(count), WordLlama()
    embedder.embed(said[:1])
    began, busy = time.perf_counter(), time.process_time()
    vectors = numpy.concatenate(
        [embedder.embed(said[n : n + 1_000]) for n in range(0, count, 1_000)]
    )
    embedded = time.perf_counter() - began
    told = VectorSettings()
    index = Index(
        ndim=embedder.dimensions,
        metric="ip",
        dtype="f16",
        connectivity=told.m,
        expansion_add=told.ef_construction,
    )
    began = time.perf_counter()
    index.add(numpy.arange(count), vectors)
    return embedded, time.perf_counter() - began, time.process_time() - busy


async def fill(folder: str, count: int) -> None:
    """Have that many memories, whose index is not built."""
    said = texts(count)
    async with application(folder) as app:
        memories = app.extensions.namespace("agents").memories
        for begin in range(0, count, 1_000):
            new = [
                NewMemory(content=text, user_id="ada", at=1_000 * n)
                for n, text in enumerate(said[begin : begin + 1_000], begin)
            ]
            await memories.add_many(new, gate=False)


async def consolidate(folder: str) -> dict[str, Any]:
    """Run the job, and say what it did, how long it took, and how much memory at most."""
    print_figures_only()
    async with application(folder) as app:
        # Its usual five minutes are enough, unless the machine is busy with something else.
        agents = app.extensions.namespace("agents")
        handle = await agents.enqueue("memory-consolidation", {"userId": "ada"}, timeout=3_600)
        began, busy = time.perf_counter(), time.process_time()
        await drain(app)
        took, used = time.perf_counter() - began, time.process_time() - busy
        job = await app.get(handle.id)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        result = json.loads(job.result or "null")
        return {
            "took": took,
            "used": used,
            "peak": peak,
            "result": result,
            "searches": await searches(app),
        }


async def searches(app: Penstock) -> list[float]:
    """Milliseconds of searches by meaning and words among all of them."""
    memories = app.extensions.namespace("agents").memories
    found: list[float] = []
    chance = random.Random(3)
    for _ in range(60):
        asked = f"What did {chance.choice(NAMES)} do with the {chance.choice(THINGS)}?"
        began = time.perf_counter()
        await memories.search(asked, user="ada", count=False)
        found.append(1_000 * (time.perf_counter() - began))
    return sorted(found[10:])


def in_process(what: str, folder: str, count: int) -> Any:
    """Do a part in a process of its own, and return what it prints."""
    command = [sys.executable, "-m", "proof.bench.memory", what, folder, "--count", str(count)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout or b"null")


def main() -> None:
    """Measure, or do one part of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=("floor", "fill", "consolidate"))
    parser.add_argument("folder", nargs="?", default="")
    parser.add_argument("--count", type=int, default=100_000)
    told = parser.parse_args()
    if told.part == "floor":
        sys.stdout.write(json.dumps(measure_floor(told.count)))
    elif told.part == "fill":
        asyncio.run(fill(told.folder, told.count))
    elif told.part == "consolidate":
        sys.stdout.write(json.dumps(asyncio.run(consolidate(told.folder))))
    else:
        report(told.count)


def report(count: int) -> None:
    """Measure everything and print a table."""
    with tempfile.TemporaryDirectory() as folder:
        embedded, built, used = in_process("floor", folder, count)
        in_process("fill", folder, count)
        done = in_process("consolidate", folder, count)
    floor, took, found = embedded + built, done["took"], done["searches"]
    figures = {
        f"embedding {count:,} texts": f"{embedded:.1f} s",
        "a bare index of their vectors": f"{built:.1f} s",
        "consolidating them": f"{took:.1f} s, {took / floor:.2f} times both",
        "by the processors' time": f"{done['used']:.1f} s, {done['used'] / used:.2f} times both",
        "at most in memory": f"{done['peak'] / 2**20:,.0f} MiB",
        "made of them": f"{done['result']['memoriesCreated']:,} semantic memories",
        "a search in all": f"p50 {found[25]:.1f} ms, p95 {found[47]:.1f} ms",
    }
    table = (line(("", "measured")), line(("---", "---")), *map(line, figures.items()))
    sys.stdout.write("\n".join(table) + "\n")


if __name__ == "__main__":
    main()

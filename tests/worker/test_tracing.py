"""A trace that goes from a producer into a worker's process, and into a job's own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from penstock import Penstock
from penstock.worker.process import WorkerSpec

SHOP = """
import os
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from penstock import Context, Penstock


class Kept(InMemorySpanExporter):
    def export(self, spans):
        for span in spans:
            Path(f"spans-{os.getpid()}").open("a").write(span.to_json(indent=None) + "\\n")
        return super().export(spans)


provider = TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(SimpleSpanProcessor(Kept()))
trace.set_tracer_provider(provider)
app = Penstock("sqlite:///jobs.db")


@app.job(queue="mail")
async def outer(ctx: Context) -> None:
    await ctx.enqueue(inner.new())


@app.job(queue="mail", run_in="process")
def inner(ctx: Context) -> None:
    with trace.get_tracer("shop").start_as_current_span("in a process of its own"):
        ctx.sync.enqueue(last.new())


@app.job(queue="mail", run_in="process")
async def last() -> None:
    with trace.get_tracer("shop").start_as_current_span("in an event loop there"):
        pass
"""


def run_worker(folder: Path) -> None:
    spec = msgspec.json.encode(WorkerSpec(target="shop:app", burst=True)).decode()
    command = [sys.executable, "-m", "penstock.worker.process", spec]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def written(folder: Path) -> dict[str, dict[str, Any]]:
    lines = [line for path in folder.glob("spans-*") for line in path.read_text().splitlines()]
    found = [json.loads(line) for line in lines]
    return {
        span["name"] + " " + span["attributes"].get("penstock.job.type", ""): span for span in found
    }


def processes(folder: Path) -> int:
    return len(list(folder.glob("spans-*")))


async def test_one_trace_holds_producer_worker_and_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    app = Penstock(f"sqlite:///{tmp_path}/jobs.db")

    @app.job(queue="mail")
    async def outer() -> None: ...

    async with app:
        await outer.enqueue()
    (tmp_path / "shop.py").write_text(SHOP)
    run_worker(tmp_path)

    (sent,) = exporter.get_finished_spans()
    assert sent.context is not None
    found = written(tmp_path)
    assert {span["context"]["trace_id"] for span in found.values()} == {
        f"0x{sent.context.trace_id:032x}"
    }
    chain = [
        "run mail outer",
        "enqueue mail inner",
        "run mail inner",
        "in a process of its own ",
        "enqueue mail last",
        "run mail last",
        "in an event loop there ",
    ]
    parents = [f"0x{sent.context.span_id:016x}"]
    parents += [found[name]["context"]["span_id"] for name in chain[:-1]]
    assert [found[name]["parent_id"] for name in chain] == parents
    assert processes(tmp_path) >= 2

"""`python -m proof.bench.learnings`: how long validation, extraction and an upload take.

Sessions are those of the corpus, said over and over in sessions of their own, with a name in each
that has to be taken out. Neither a model nor a chain is waited for: both work on this machine, and
the upload is one to a Kubo-shaped server and a real EVM, whose own time is counted.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from penstock import Penstock, Settings
from penstock.apps.recorder.captured import Captured, Message, conversation_id
from penstock.apps.recorder.learn import learn
from penstock.apps.recorder.learnings import Learnings
from penstock.apps.recorder.outbound import Later
from penstock.apps.recorder.publish.upload import publish
from penstock.apps.recorder.records import LearningFilter
from penstock.apps.recorder.validate import validate
from penstock.apps.recorder.writing import write
from proof.bench.report import line
from proof.learnings import CORPUS
from proof.servers.evm import SENDER, EvmNode, evm_node
from proof.servers.kubo import KuboNode, kubo_node

PLATFORM = "claude_code"
KEY = "BENCH_SENDER"


def told(count: int, now: int) -> Iterator[tuple[str, list[Captured]]]:
    """So many sessions, each with its id."""
    lines = (CORPUS / "own/sessions.jsonl").read_text("utf-8").splitlines()
    for n in range(count):
        session = f"bench-{n}"
        messages = json.loads(lines[n % len(lines)])["messages"]
        messages.append({"role": "user", "content": f"thanks, my name is Ada Lovelace {n}"})
        yield (
            session,
            [
                Captured(
                    platform=PLATFORM,
                    session_id=session,
                    hook_type="",
                    event_type="user_prompt",
                    event_id=f"{session}-{at}",
                    timestamp=now + at,
                    payload={"prompt": message["content"]},
                    source="import",
                    messages=(Message(message["role"], message["content"]),),
                )
                for at, message in enumerate(messages)
            ],
        )


async def measure(folder: Path, count: int, evm: EvmNode, kubo: KuboNode) -> dict[str, list[float]]:
    """Seconds of each validation, extraction and upload."""
    published = {
        "enabled": True,
        "kubo": kubo.url,
        "rpc": evm.url,
        "chain_id": evm.chain_id,
        "contract": evm.contract,
        "key": f"env:{KEY}",
        "confirmations": 1,
    }
    settings = Settings(
        url=f"sqlite:///{folder}/bench.db", extension={"recorder": {"publish": published}}
    )
    taken: dict[str, list[float]] = {"validation": [], "extraction": [], "upload": []}
    async with Penstock(settings=settings, extensions=["events", "recorder"]) as app:
        for session, captured in told(count, app.store.clock.now()):
            await write(app, captured)
            conversation = conversation_id("", PLATFORM, session)
            began = time.perf_counter()
            await validate(app, conversation, "1")
            taken["validation"].append(time.perf_counter() - began)
            began = time.perf_counter()
            await learn(app, conversation, 0.6, [])
            taken["extraction"].append(time.perf_counter() - began)
        learnings = Learnings(app)
        for one in await learnings.list(LearningFilter(limit=20)):
            await learnings.approve(one.id)
            began = time.perf_counter()
            await _published(app, one.id, evm)
            taken["upload"].append(time.perf_counter() - began)
    return taken


async def _published(app: Penstock, learning: str, evm: EvmNode) -> Any:
    while True:
        try:
            return await publish(app, learning)
        except Later:
            evm.mine()


def percentile(seconds: Sequence[float], share: int) -> float:
    """So many percent took no longer."""
    return statistics.quantiles(seconds, n=100, method="inclusive")[share - 1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=200)
    count = parser.parse_args().sessions
    os.environ[KEY] = SENDER
    with tempfile.TemporaryDirectory() as folder, evm_node() as evm, kubo_node() as kubo:
        os.environ["PENSTOCK_HOME"] = folder
        taken = asyncio.run(measure(Path(folder), count, evm, kubo))
    sys.stdout.write(f"{line(('job', 'p50', 'p95', 'measured'))}\n")
    for name, seconds in taken.items():
        middle, slow = percentile(seconds, 50), percentile(seconds, 95)
        figures = (name, f"{middle * 1000:.0f} ms", f"{slow * 1000:.0f} ms", len(seconds))
        sys.stdout.write(f"{line(figures)}\n")


if __name__ == "__main__":
    main()

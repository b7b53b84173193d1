import json
import subprocess
import sys
from pathlib import Path

PEERS = Path(__file__).parents[4] / "benchmarks/peers"


def test_what_a_library_prints_does_not_come_between_a_report_and_its_end() -> None:
    program = "import harness; print('half a line', end='', flush=True); harness.say({'done': 7})"

    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=PEERS, capture_output=True, text=True, check=True
    )

    assert json.loads(ended.stdout) == {"done": 7}
    assert ended.stderr == "half a line"

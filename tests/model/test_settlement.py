"""What is known of an execution goes with it, however it is settled in the end."""

from msgspec.structs import asdict

from penstock.model.outcome import Completed, buried
from proof.conformance.build import BROKEN


def test_an_execution_that_is_buried_after_all_keeps_its_facts() -> None:
    facts = {"fence": 7, "queue": "mail", "started_at": 3, "wait_ms": 4, "duration_ms": 5}
    done = Completed(id="a", type="send", attempts=2, tenant_id="acme", **facts)
    kept = asdict(buried(done, BROKEN))
    del kept["failure"]
    told = asdict(done)
    del told["result"]
    assert kept == told

import pytest

from proof.bench.figures import Figure, figures
from proof.bench.machine import busy_notes
from proof.bench.readings import Readings
from proof.bench.report import Outcome, as_markdown
from proof.bench.scale import Scale

NAMES = (
    "raw enqueue/s", "enqueue by 1000/s", "enqueue by 100/s", "raw single ms", "single ms",
    "sequential/s", "concurrent/s", "crowded single ms", "loaded single ms", "pickup ms",
    "idle worker %", "idle supervisor %", "memory at mark MB", "memory at end MB", "raw drain/s",
    "drain/s", "due drain/s",
    "drain by 10/s", "drain with history/s", "interpreter start ms", "import penstock ms",
    "plain drain/s", "limited drain/s", "tenants drain/s", "fan-in s", "chain links/s",
    "scheduling %", "not scheduling %", "explain ms", "claim ms", "claim beside history ms",
    "claim beside transaction ms", "post ms", "library by 1000/s", "posted by 1000/s",
    "list page: newest ms", "list page: a text that is nowhere ms", "GET /api/jobs: newest ms",
    "job page ms", "server with a tab %", "server without a tab %", "server MB",
)  # fmt: skip
SCALE = Scale.full(50_000)


@pytest.fixture
def readings() -> Readings:
    found = Readings()
    for name in NAMES:
        found.extend(name, [10.0, 20.0, 30.0])
    return found


def find(readings: Readings, topic: str, part: str) -> Figure:
    [found] = [f for f in figures(readings, SCALE) if f.topic.startswith(topic) and part in f.name]
    return found


def test_a_ratio_is_the_median_of_the_repetitions_own_ratios() -> None:
    readings = Readings()
    readings.extend("drain/s", [10, 100, 8])
    readings.extend("raw drain/s", [20, 100, 10])

    assert readings.ratio("drain/s", "raw drain/s") == 0.8


def test_a_target_is_met_or_missed(readings: Readings) -> None:
    assert find(readings, "bulk", "1,000").met is True
    assert find(readings, "pickup", "p95").met is False
    assert find(readings, "idle", "supervisor").met is None


def test_an_engine_faster_than_its_own_statements_gets_no_verdict(readings: Readings) -> None:
    impossible = Readings()
    for name in NAMES:
        impossible.extend(name, [1.0] if name == "single ms" else [10.0])
        if name == "enqueue by 100/s":
            impossible.extend(name, [30.0, 30.0])
            impossible.extend("raw enqueue/s", [10.0, 10.0])

    for figure in (find(impossible, "single", "p50"), find(impossible, "bulk", "batches of 100,")):
        assert figure.met is None
        assert figure.doubt
    assert find(readings, "single", "p50").met is True


def test_a_busy_machine_is_named_under_the_table() -> None:
    assert busy_notes({"load before the run": "0.2", "cores": "2"}) == []
    assert "busy" in busy_notes({"load before the run": "4.0", "cores": "2"})[0]


def test_a_peer_is_shown_when_it_was_measured(readings: Readings) -> None:
    assert not [f for f in figures(readings, SCALE) if f.reference_name == "huey"]

    readings.extend("huey/s", [1.0, 2.0, 3.0])

    [peer] = [f for f in figures(readings, SCALE) if f.reference_name == "huey"]
    assert (peer.ratio, peer.met) == (10, True)


def test_a_list_is_as_slow_as_by_its_slowest_filter(readings: Readings) -> None:
    assert find(readings, "server", "list page").met is True

    readings.extend("list page: a text that is nowhere ms", [150.0])

    slow = find(readings, "server", "list page")
    assert (slow.measured, slow.met) == (150, False)
    assert "2 filters" in slow.name
    assert find(readings, "server", "GET /api/jobs").met is True


def test_a_tab_costs_what_the_server_uses_more(readings: Readings) -> None:
    assert find(readings, "idle", "a tab").measured == 0

    readings.extend("server with a tab %", [40.0, 40.0, 40.0])

    assert find(readings, "idle", "a tab").measured == 15


def test_the_page_names_its_command_its_misses_and_its_machine(readings: Readings) -> None:
    outcome = Outcome(
        command="make bench",
        machine={"cores": "2"},
        scale=SCALE,
        figures=figures(readings, SCALE),
        readings=readings.spread(),
        notes=["a note"],
    )

    page = as_markdown(outcome)

    assert "`make bench`" in page
    assert "| cores | 2 |" in page
    assert "**no**" in page
    assert "- a note" in page

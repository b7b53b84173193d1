import pytest

from proof.bench.figures import Figure
from proof.bench.peers.report import ComparisonOutcome, comparison_as_markdown
from proof.bench.peers.system import OURS, PEERS, REDIS, SQLITE, System
from proof.bench.peers.table import _singles, limit_row, system_row, verdicts
from proof.bench.readings import Readings
from proof.bench.stages.comparison import limit_of

OUR = next(system for system in OURS if system.store == REDIS)
TASKIQ = next(system for system in PEERS if system.name == "taskiq")
SAQ = next(system for system in PEERS if system.name == "saq")
HUEY = next(system for system in PEERS if system.name == "huey")
FLEXIQ = next(system for system in PEERS if system.name == "flexiq")
NODE = next(system for system in PEERS if system.name == "bullmq_node")


@pytest.fixture
def readings() -> Readings:
    found = Readings()
    for system, rate, pickup in (
        (OUR, 100, 2.0),
        (TASKIQ, 40, 1.0),
        (SAQ, 20, 3.0),
        (NODE, 80, 4.0),
    ):
        found.extend(f"{system.key} bulk/s", [rate, rate])
        found.extend(f"{system.key} single/s", [rate, rate])
        found.extend(f"{system.key} drain/s", [rate, rate])
        found.extend(f"{system.key} drain by two/s", [2 * rate, 2 * rate])
        found.extend(f"{system.key} pickup ms", [pickup] * 3)
    found.extend(f"{limit_of(REDIS)} bulk/s", [150, 150])
    found.extend(f"{limit_of(REDIS)} drain/s", [250, 250])
    return found


def judged(readings: Readings) -> dict[tuple[str, str | None], Figure]:
    found = verdicts(readings, {system.store: system for system in OURS}, PEERS)
    return {(figure.name, figure.reference_name): figure for figure in found}


def test_penstock_is_judged_against_the_best_peer_in_python_and_the_one_on_node(
    readings: Readings,
) -> None:
    found = judged(readings)

    drained = "drain by one process"
    assert (found[drained, "taskiq"].ratio, found[drained, "taskiq"].met) == (2.5, True)
    assert (found[drained, "BullMQ on Node"].ratio, found[drained, "BullMQ on Node"].met) == (
        1.25,
        False,
    )
    assert (drained, "saq") not in found
    assert found["bulk enqueue", "BullMQ on Node"].met is True


def test_single_enqueues_of_both_kinds_are_judged_against_the_best_of_either(
    readings: Readings,
) -> None:
    readings.extend(f"{OUR.key} single by a plain function/s", [60, 60])
    readings.extend(f"{SAQ.key} single by a plain function/s", [90, 90])

    found = judged(readings)

    assert found["single enqueue", "saq"].met is True
    assert (found["single enqueue by app.sync", "saq"].ratio) == pytest.approx(60 / 90)
    assert found["single enqueue by app.sync", "saq"].met is False


def test_a_peer_that_does_not_wait_for_the_disk_is_shown_but_no_measure(
    readings: Readings,
) -> None:
    ours = next(system for system in OURS if system.store == SQLITE)
    for system, rate in ((ours, 100), (HUEY, 90), (FLEXIQ, 400)):
        readings.extend(f"{system.key} single/s", [rate])

    [figure] = _singles(readings, ours, [HUEY, FLEXIQ])

    assert (figure.reference_name, figure.met) == ("huey", True)


def test_penstock_is_judged_against_the_limit_and_against_its_own_one_process(
    readings: Readings,
) -> None:
    found = judged(readings)

    assert found["drain by one process", "raw limit"].met is False
    assert found["bulk enqueue", "raw limit"].met is True
    assert found["drain by two processes", "one process"].ratio == 2


def test_the_quickest_pickup_is_the_one_to_reach(readings: Readings) -> None:
    pickup = judged(readings)["pickup, p95", "taskiq"]

    assert (pickup.ratio, pickup.met) == (2, False)


def test_a_store_where_penstock_was_not_measured_is_not_judged(readings: Readings) -> None:
    assert {figure.topic for figure in judged(readings).values()} == {REDIS}


def row(readings: Readings, system: System, failure: str | None = None) -> str:
    outcome = ComparisonOutcome(
        command="make compare",
        rounds=2,
        machine={"cores": "2"},
        rows=[
            limit_row(readings, REDIS),
            system_row(readings, system, version="9.9", setting=20, failure=failure),
        ],
        verdicts=list(judged(readings).values()),
        readings=readings.spread(),
        notes=["a note"],
    )
    return comparison_as_markdown(outcome)


def test_the_page_shows_each_system_with_its_version_and_setting(readings: Readings) -> None:
    page = row(readings, SAQ)

    assert "## On Valkey" in page
    assert "| saq 9.9 | concurrency 20 | 20.0 | 20.0 |  | 20.0 | 40.0 | 3.00 | 3.00 |" in page
    assert "| raw limit | batches of 100 | 150 |  |  | 250 |  |  |  |" in page
    assert "`make compare`" in page
    assert "take turns, twice each, on" in page
    assert "- a note" in page
    assert "**no**" in page


def test_a_peer_that_failed_is_named_and_not_dropped(readings: Readings) -> None:
    arq = next(system for system in PEERS if system.name == "arq")

    page = row(readings, arq, failure="no such package")

    assert "| arq 9.9 | concurrency 20 | failed, see below |" in page
    assert "- arq on Valkey could not be measured in full: no such package" in page

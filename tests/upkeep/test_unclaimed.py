from penstock.store.contract import WorkerInfo
from penstock.upkeep.sweeps import unserved
from tests.support.workers import a_worker


def heard_of(age_ms: int) -> WorkerInfo:
    return a_worker(types=("mail.send",), heartbeat_age_ms=age_ms)


def test_a_type_is_served_by_a_living_worker_that_knows_it() -> None:
    waiting = {"mail.send": 3, "import": 1}
    assert unserved(waiting, [heard_of(10)]) == {"import": 1}
    assert unserved(waiting, [heard_of(60_000)]) == {"import": 1, "mail.send": 3}


def test_messages_about_alerts_are_delivered_by_a_server_where_no_worker_does() -> None:
    assert unserved({"penstock.alert": 2, "import": 1}, []) == {"import": 1}

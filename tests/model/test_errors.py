import copy
import inspect
import pickle

import pytest

from penstock.events import consumer, dead, enrichment, event
from penstock.model import errors, not_found, store_errors
from penstock.model.errors import PenstockError

STORE = "sqlite:///work.db"

EXAMPLES: tuple[PenstockError, ...] = (
    errors.NotAdmitted("resize", "billing", "the account is closed"),
    store_errors.NoTables("A unit of work", "redis://localhost"),
    errors.JobsRunning(2),
    errors.UnknownType("send", ["resize"]),
    errors.NotIncluded("send"),
    errors.InvalidArguments("resize", "width", "int", "str"),
    errors.PayloadTooLarge("resize", 2_000_000, 1_048_576),
    errors.InvalidOption("priority", 11, "a whole number from 1 to 10"),
    errors.ResultNotSerializable("resize", "socket"),
    errors.InvalidResult("resize", "Expected `int`, got `str`"),
    errors.CorruptPayload("01J", "resize", "not JSON"),
    not_found.JobNotFound("01J"),
    errors.JobFailed("01J", "dead_letter", "boom"),
    errors.JobCancelled("01J"),
    errors.ResultTimeout("01J", 10, "queued"),
    errors.KeyTaken("welcome-1", "01J", "send"),
    errors.IllegalTransition("completed", "cancel", "01J"),
    store_errors.StoreError(STORE, "failed (disk I/O error)"),
    store_errors.StoreUnavailable(STORE, "no such file"),
    store_errors.StoreCorrupt(STORE, "malformed page"),
    store_errors.StoreReadOnly(STORE),
    store_errors.AccessDenied(STORE, "wrong password", "correct it in the URL"),
    store_errors.ServerTooOld(STORE, "5.0", "6.2"),
    store_errors.UnsafeServer(STORE, "it may evict them", "set maxmemory-policy to noeviction"),
    store_errors.TooManyToCopy(STORE, 400_000, 300_000),
    store_errors.NoTransactions(STORE),
    store_errors.StoreIsDirectory(STORE),
    store_errors.SchemaTooNew(STORE, 9, 3),
    store_errors.NetworkFilesystem(STORE, "nfs4"),
    store_errors.SqliteTooOld(STORE, "3.40.1", "3.51.3"),
    store_errors.ForeignHandle(STORE),
    store_errors.ForeignConnection(STORE, "sqlite3.Connection"),
    store_errors.OtherDatabase(STORE, "sqlite3.Connection"),
    store_errors.ForkedStore(STORE),
    store_errors.TransactionHeld(STORE),
    store_errors.TransactionsMet(STORE),
    store_errors.StoreFull(STORE),
    store_errors.NotAPenstockStore(STORE, "a table named 'users'"),
    store_errors.StoreClosed(STORE),
    errors.MissingExtra("postgres", "psycopg"),
    errors.ParentNotFound("01J"),
    errors.DependencyCycle(["a", "b", "a"], {"a": "send"}),
    errors.ForeignTenant("acme", "other"),
    errors.InvalidCondition("import os", "it is no expression"),
    errors.InvalidSchedule("cron", "* *", "five fields"),
    errors.ScheduleOver("ends_at", "1999", "in the future"),
    not_found.ScheduleNotFound("nightly", ["hourly"]),
    errors.QueueFull("mail", 1_000, 1_000, 2.5),
    errors.UnknownOption("qeue", ["queue", "priority"]),
    not_found.AmbiguousId("01JD", ["01JD3Z6K3V9M0Q2T4W6Y8A0C2E", "01JD3Z6K3V9M0Q2T4W6Y8A0C2F"]),
    not_found.GroupNotFound("3f", ["3fa9c2d1", "3fb0"]),
    errors.CanariesUnproven("3fa9c2d1", ["01J"], ["01K"]),
    not_found.AlertNotFound("backlog"),
    not_found.BreakerNotFound("bank"),
    not_found.FollowerNotFound("links.clicks"),
    not_found.LimitNotFound("queue", "mail", "rate"),
    not_found.TokenNotFound("t1"),
    not_found.UserNotFound("ann"),
    errors.AlertNotFiring("backlog", "resolved"),
    errors.ServerRefused("https://ann:secret@jobs.example", 403, "No."),
    event.InvalidEvent("e1", "has no event_type"),
    event.EventNotFound("e1"),
    consumer.UnknownConsumer("totals", ["metrics"]),
    consumer.CannotRebuild("totals"),
    dead.LetterNotFound("01J"),
    enrichment.NotEnriched("totals", ["directory"]),
)


def test_every_error_has_an_example_here() -> None:
    defined = {
        cls
        for module in (errors, not_found, store_errors, consumer, dead, enrichment, event)
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if issubclass(cls, PenstockError) and cls not in (PenstockError, not_found.NotFound)
    }
    assert defined == {type(error) for error in EXAMPLES}


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickle_and_copy_with_its_fields(error: PenstockError) -> None:
    error.add_note("seen in a child process")
    for revived in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(revived) is type(error)
        assert str(revived) == str(error)
        assert vars(revived) == vars(error)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_is_a_sentence(error: PenstockError) -> None:
    sentence = str(error)
    # One that a server wrote begins with whose it is.
    assert sentence[0].isupper() or isinstance(error, errors.ServerRefused)
    assert sentence.endswith(".") or isinstance(error, errors.JobFailed)
    assert "\n" not in sentence
    assert "None" not in sentence


def test_an_option_error_names_the_option_its_value_and_what_is_allowed() -> None:
    error = errors.InvalidOption("priority", 11, "a whole number from 1 to 10")
    assert str(error) == "Option 'priority' is 11, but it must be a whole number from 1 to 10."


def test_an_option_error_shortens_a_long_value_and_survives_a_broken_repr() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    assert len(errors.InvalidOption("key", "k" * 5_000, "shorter").value or "") == 80
    assert errors.InvalidOption("key", Broken(), "text").value == "a Broken"


def test_wrong_arguments_name_the_argument_and_the_expected_type() -> None:
    missing = errors.InvalidArguments.missing("resize", "width", "int")
    unexpected = errors.InvalidArguments.unexpected("resize", "colour", ["path", "width"])
    assert str(missing) == (
        "Argument 'width' of job type 'resize' is wrong: expected int, got nothing."
    )
    assert "expected one of path, width" in str(unexpected)


def test_a_cancelled_job_is_a_failed_job() -> None:
    error = errors.JobCancelled("01J", "withdrawn")
    assert isinstance(error, errors.JobFailed)
    assert (error.status, str(error)) == ("cancelled", "Job 01J ended as cancelled: withdrawn")


def test_a_result_timeout_is_caught_as_a_timeout_error() -> None:
    with pytest.raises(TimeoutError, match=r"after 2\.5 s"):
        raise errors.ResultTimeout("01J", 2.5)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://bob:hunter2@db/app", "postgresql://bob:***@db/app"),
        ("redis://:hun@ter2@cache:6379/0", "redis://:***@cache:6379/0"),
        ("postgresql://bob@db/app", "postgresql://bob@db/app"),
        ("sqlite:///home/a:b@c/work.db", "sqlite:///home/a:b@c/work.db"),
        ("/tmp/work.db", "/tmp/work.db"),
    ],
)
def test_a_store_error_shows_the_url_without_its_password(url: str, shown: str) -> None:
    error = store_errors.StoreClosed(url)
    assert error.store == shown
    assert "hunter2" not in str(error)


def test_a_misspelt_option_is_answered_with_the_one_that_was_meant() -> None:
    told = str(errors.UnknownOption("qeue", ["queue", "priority"]))
    assert told == "There is no option 'qeue'; did you mean 'queue'? Known are queue, priority."
    assert "did you mean" not in str(errors.UnknownOption("colour", ["queue"]))


def test_a_value_that_is_not_shown_leaves_a_whole_sentence() -> None:
    told = str(errors.InvalidOption("alerts", errors.NOT_SHOWN, "a valid setting"))
    assert told == "Option 'alerts' must be a valid setting."

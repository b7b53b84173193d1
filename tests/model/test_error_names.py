import pkgutil
from importlib import import_module

import pytest

from penstock import model
from penstock.model.errors import (
    PREFIX,
    PenstockError,
    error_of,
    fields_of,
    known_errors,
    urn_of,
)
from penstock.model.not_found import JobNotFound, ScheduleNotFound
from tests.model.samples import sample_error


def all_below(kind: type[PenstockError]) -> set[type[PenstockError]]:
    return {kind}.union(*(all_below(each) for each in kind.__subclasses__()))


def test_every_error_of_the_model_has_a_name_of_its_own() -> None:
    for module in pkgutil.iter_modules(model.__path__):
        import_module(f"penstock.model.{module.name}")
    ours = {
        kind for kind in all_below(PenstockError) if kind.__module__.startswith("penstock.model")
    }
    assert set(known_errors().values()) == ours
    assert all(urn_of(kind) == urn for urn, kind in known_errors().items())


def test_names_are_the_words_of_the_class() -> None:
    assert urn_of(JobNotFound) == f"{PREFIX}job-not-found"
    assert urn_of(ScheduleNotFound) == "urn:penstock:problem:schedule-not-found"


def test_an_error_made_elsewhere_has_the_name_of_what_it_is_made_of() -> None:
    class OrderNotFound(JobNotFound): ...

    assert urn_of(OrderNotFound) == urn_of(JobNotFound)


@pytest.mark.parametrize("kind", known_errors().values(), ids=known_errors().keys())
def test_an_error_comes_back_with_its_sentence_and_its_fields(kind: type[PenstockError]) -> None:
    error = sample_error(kind)
    found = error_of(urn_of(kind), str(error), fields_of(error))
    assert type(found) is kind
    assert (str(found), vars(found)) == (str(error), vars(error))


def test_a_name_that_nobody_knows_is_no_error_of_ours() -> None:
    assert error_of("about:blank", "Not found.", {}) is None
    assert error_of(f"{PREFIX}from-the-future", "?", {}) is None

"""Every error that a server tells comes out as the error it was."""

import asyncio

import httpx
import pytest
from starlette.requests import Request

from penstock.model.errors import InvalidArguments, PenstockError, known_errors
from penstock.model.store_errors import StoreError
from penstock.remote.wire import Hitch, problem_of
from penstock.server import problems
from penstock.server.problems import STATUSES, Refusal
from tests.model.samples import sample_error

URL = "https://jobs.example.com"


def told_by_server(error: Exception) -> PenstockError:
    """The error that a caller raises when this one was raised in a route."""
    request = Request({"type": "http", "headers": []})
    handler = problems._refusal if isinstance(error, Refusal) else problems._penstock
    answer = asyncio.run(handler(request, error))
    response = httpx.Response(
        answer.status_code,
        headers=answer.headers,
        content=bytes(answer.body),
        request=httpx.Request("GET", URL),
    )
    found = problem_of(URL, response, now_ms=0)
    return found.error if isinstance(found, Hitch) else found


TOLD = {name: k for name, k in known_errors().items() if issubclass(k, tuple(STATUSES))}
STORE_ERRORS = {name: kind for name, kind in TOLD.items() if issubclass(kind, StoreError)}
OTHERS = {name: kind for name, kind in TOLD.items() if name not in STORE_ERRORS}


@pytest.mark.parametrize("kind", OTHERS.values(), ids=OTHERS.keys())
def test_an_error_passes_the_network_unchanged(kind: type[PenstockError]) -> None:
    error = sample_error(kind)
    found = told_by_server(error)
    assert type(found) is kind
    assert str(found) == str(error)
    assert vars(found) == vars(error)


@pytest.mark.parametrize("kind", STORE_ERRORS.values(), ids=STORE_ERRORS.keys())
def test_an_error_of_the_store_keeps_its_kind_and_names_the_server(kind: type[StoreError]) -> None:
    found = told_by_server(sample_error(kind))
    assert type(found) is kind
    assert found.store == URL
    assert "a store" not in str(found)


def test_an_error_in_one_call_of_a_batch_keeps_its_kind() -> None:
    error = InvalidArguments("send", "to", "a text", "7")
    found = told_by_server(Refusal.of(error, field="body.3.to"))
    assert type(found) is InvalidArguments
    assert found.argument == "to"

"""What the API's document says is what it does, whatever it is sent."""

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from penstock import Penstock
from penstock.alerts.alerts import Alerts
from penstock.config import Settings
from penstock.model.alert import Reading, judged
from penstock.model.alert_rules import RULES
from penstock.server.access.identity import Scope
from penstock.server.access.tokens import Tokens
from penstock.server.app import create_server
from proof.conformance.build import dead_job
from tests.faults.support.facts import figure
from tests.support.http_server import serving
from tests.support.places import Place

pytestmark = pytest.mark.thorough
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = {
    GenerationMode.POSITIVE: figure(short=2, full=100),
    GenerationMode.NEGATIVE: figure(short=1, full=50),
}
METHODS = ["get", "post", "put", "delete"]
KNOWN = {"type": "send_mail", "zone": "UTC", "payload": {}, "cron": "0 3 * * *", "rate": "10/s"}


def application(place: Place) -> Penstock:
    chosen = Settings(**place.settings, requests_per_minute=0, queue_limit=0, min_workers=0)
    made = Penstock(settings=chosen)

    @made.job(name="send_mail", queue="mail", breaker="smtp")
    async def send_mail(to: str = "ann") -> None: ...

    return made


async def furnished(app: Penstock) -> tuple[str, dict[str, list[str]]]:
    """A token, and what there is to ask for by name."""
    async with app:
        tokens = Tokens(app.store)
        _, text = await tokens.create("schema", (Scope.ADMIN,), by="test")
        other, _ = await tokens.create("other", (Scope.READ,), by="test")
        await app.declare()
        mail = app.find_type("send_mail")
        await app.schedule("nightly", mail.partial(), cron="0 3 * * *")
        waiting = await app.enqueue(mail.prepare(mail.defaults, (), {}))
        dead = await dead_job(app.store, type="send_mail", payload="{}")
        groups = await app.dead.groups()
        firing = Reading(4_000), app.store.clock.now()
        await Alerts(app).change("old_jobs", "old_jobs", lambda a: judged(a, RULES[2], *firing))
        return text, {
            "job_id": [waiting.id, dead, "not an id"],
            "group": [groups[0].id],
            "name": ["nightly", "smtp", "old_jobs"],
            "queue": ["mail"],
            "token_id": [other.id],
        }


@pytest.fixture
def api(place: Place) -> Iterator[Any]:
    app = application(place)
    token, names = asyncio.run(furnished(app))
    server = create_server(app)
    with serving(server) as address:
        schema = schemathesis.openapi.from_dict(server.openapi())
        schema.config.update(base_url=address, headers={"Authorization": f"Bearer {token}"})
        yield schema, names


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_request_is_answered_otherwise_than_the_document_says(
    api: Any, mode: GenerationMode
) -> None:
    schema, names = api
    wrong: dict[str, str] = {}
    operations = [each.ok() for each in schema.get_all_operations()]
    for operation in sorted(operations, key=lambda each: METHODS.index(each.method)):
        # What lives on would be followed for minutes.
        ended = {"job_id": names["job_id"][1:]} if operation.label.endswith("/events") else {}
        try:
            tried(operation, mode, names | ended)
        except FailureGroup as failures:
            wrong[operation.label] = str(failures.exceptions[0])
    assert wrong == {}


def tried(operation: Any, mode: GenerationMode, names: dict[str, list[str]]) -> None:
    @given(operation.as_strategy(generation_mode=mode), st.randoms(use_true_random=False))
    @settings(
        max_examples=EXAMPLES[mode],
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    def send(case: Any, chance: Random) -> None:
        for name in case.path_parameters or ():
            case.path_parameters[name] = chance.choice(names[name])
        if isinstance(case.body, dict) and mode is GenerationMode.POSITIVE:
            case.body.update({n: KNOWN[n] for n in KNOWN if n in case.body})
        case.call_and_validate(checks=CHECKS, timeout=20)

    try:
        send()
    except Unsatisfiable:
        """What takes nothing cannot be sent anything wrong."""

from datetime import timedelta

import pytest

from penstock import Context, Penstock
from penstock.server.dashboard.views.enqueue import outline, summary


def test_an_outline_names_every_argument_with_something_of_its_kind() -> None:
    app = Penstock("sqlite:///:memory:")

    @app.job
    async def send(
        ctx: Context, to: str, copies: int, tags: list[str], wait: timedelta, subject: str = "hi"
    ) -> None:
        """Send a message.

        Not shown.
        """

    assert outline(send) == (
        '{\n  "to": "",\n  "copies": 0,\n  "tags": [],\n  "wait": null,\n  "subject": "hi"\n}'
    )
    assert summary(send) == "Send a message."


@pytest.mark.parametrize("default", [None, 3, (1, 2), {"a": 1}])
def test_a_default_is_shown_as_json(default: object) -> None:
    app = Penstock("sqlite:///:memory:")

    @app.job
    async def work(value: object = default) -> None: ...

    assert outline(work).startswith('{\n  "value": ')
    assert summary(work) == ""

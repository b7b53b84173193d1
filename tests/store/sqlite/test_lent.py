"""Connections that callers begin transactions of their own on."""

import asyncio
import threading
from contextlib import closing
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.model.store_errors import TransactionsMet


async def test_two_tasks_of_one_event_loop_that_would_wait_for_each_other_are_told(
    tmp_path: Path,
) -> None:
    async with Penstock(f"sqlite:///{tmp_path}/work.db") as app:
        with closing(app.connection()) as one, closing(app.connection()) as other:
            with one:
                one.execute("CREATE TABLE mine (x)")
                with pytest.raises(TransactionsMet, match=r"asyncio\.Lock"), other:
                    other.execute("CREATE TABLE theirs (x)")
            with other, other:
                other.execute("CREATE TABLE theirs (x)")


async def test_a_transaction_of_another_thread_is_waited_for(tmp_path: Path) -> None:
    async with Penstock(f"sqlite:///{tmp_path}/work.db") as app:
        begun, may_end = threading.Event(), threading.Event()
        order: list[str] = []

        def hold() -> None:
            with closing(app.connection()) as connection, connection:
                connection.execute("CREATE TABLE mine (x)")
                begun.set()
                may_end.wait(10)
                order.append("mine")

        held = asyncio.create_task(asyncio.to_thread(hold))
        await asyncio.to_thread(begun.wait)
        threading.Timer(0.05, may_end.set).start()
        with closing(app.connection()) as connection, connection:
            connection.execute("CREATE TABLE theirs (x)")
            order.append("theirs")
        await held
        assert order == ["mine", "theirs"]

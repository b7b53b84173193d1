"""Tasks of every kind."""

import threading
from collections import Counter
from typing import Any

from django.db import connection

from penstock import Dead
from penstock.django import job_options
from penstock.django.framework import TaskContext, _tasks

task = _tasks.task
calls: Counter[str] = Counter()


class OutOfStock(Exception):
    """An error of the application's own."""


@task
def add(*numbers: int, **more: int) -> int:
    return sum(numbers) + sum(more.values())


@task(priority=40, queue_name="mail")
async def greet(name: str) -> str:
    return f"hello {name}"


@task
@job_options(max_retries=1, retry_delay=0)
def fail_once(name: str) -> str:
    calls[name] += 1
    if calls[name] == 1:
        raise OutOfStock(f"no {name} left")
    return name


@task
@job_options(max_retries=0)
def fail() -> None:
    raise OutOfStock("never again")


@task
def give_up() -> None:
    raise Dead("nobody wants it")


@task
@job_options(max_retries=0)
def return_a_lock() -> Any:
    return threading.Lock()


@task(takes_context=True)
@job_options(max_retries=1, retry_delay=0)
def about(context: Any, word: str) -> list[Any]:
    assert isinstance(context, TaskContext)
    if context.attempt == 1:
        raise OutOfStock(word)
    result = context.task_result
    return [context.attempt, result.id, result.status, result.args, len(result.errors)]


@task(takes_context=True)
async def about_in_loop(context: Any) -> list[Any]:
    return [context.attempt, context.task_result.id]


@task
def count_orders() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM orders")
        [found] = cursor.fetchone()
    return int(found)


@task
def is_connected() -> bool:
    return connection.connection is not None


@task
def pass_on(name: str) -> str:
    result = greet.using(queue_name="passed").enqueue(name)
    return str(result.id)


@task
async def pass_on_in_loop(name: str) -> str:
    result = await greet.using(queue_name="passed").aenqueue(name)
    return str(result.id)

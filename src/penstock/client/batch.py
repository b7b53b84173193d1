"""Calls and flows that are enqueued together: taken apart into jobs, put together as handles."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.client.flow import Flow, Plan, plan
from penstock.client.flow_handle import FlowHandle
from penstock.client.handle import JobHandle
from penstock.client.job_type import Partial, Prepared
from penstock.model.errors import InvalidOption

if TYPE_CHECKING:
    from penstock.client.app import Penstock


class Batch:
    """One enqueue: `calls` are all its jobs, each after the steps of its flow before it."""

    __slots__ = ("_items", "calls")

    def __init__(self, given: Sequence[Any]) -> None:
        if not isinstance(given, list) and not isinstance(given, Iterable):
            raise InvalidOption("calls", given, "a list of calls made with new, or of flows")
        given = list(given)
        self._items: list[Prepared[Any] | Plan] | None = None
        for each in given:
            if type(each) is not Prepared or each.lacks:
                break
        else:
            self.calls: list[Prepared[Any]] = given
            return
        self._items = [_item(each) for each in given]
        self.calls = []
        for item in self._items:
            self.calls += item.calls if isinstance(item, Plan) else [item]

    def handles(
        self,
        app: "Penstock",
        jobs: Sequence[JobHandle[Any]],
        flow: Callable[..., FlowHandle[Any]] = FlowHandle,
    ) -> list[Any]:
        """A handle for each thing that was given, from those of the calls."""
        if self._items is None:
            return list(jobs)
        rest = iter(jobs)
        return [
            flow(app, item, [next(rest) for _ in item.calls])
            if isinstance(item, Plan)
            else next(rest)
            for item in self._items
        ]


def _item(given: Any) -> Prepared[Any] | Plan:
    if isinstance(given, Partial):
        return given.complete()
    if isinstance(given, Flow):
        return plan(given)
    raise InvalidOption("call", given, "one made with new, or a chain or group of them")

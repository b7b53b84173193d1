"""What a flow is made of: calls, chains and groups, put together with `|`."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from penstock.client.flow import Chain
    from penstock.model.job import Lease

R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")


class Step(ABC, Generic[R_co]):
    """A part of a flow whose result is an R: `fetch.new(url) | parse.new() | store.new()`."""

    __slots__ = ()

    def __or__(self, following: "Step[S]") -> "Chain[S]":
        """This step, then the other one, which takes this one's result."""
        from penstock.client.flow import Chain

        return Chain((self, following))

    @abstractmethod
    def child_of(self, parent: "Lease") -> "Step[R_co]":
        """The same step with every call a child of a running job."""

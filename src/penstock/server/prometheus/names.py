"""Names that become labels: as many as were agreed on, and the rest under one."""

from collections.abc import Iterable

OTHER = "other"


class Names:
    """The first so many names that were seen keep their own series; all later ones share one.

    Names never change places: a counter that moved from one series to another would look as if
    it had been set back.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[str, None] = {}

    def learn(self, names: Iterable[str]) -> None:
        """Give names a series of their own while there is room."""
        for name in names:
            if name not in self._known and len(self._known) < self._most:
                self._known[name] = None

    def label(self, name: str) -> str:
        """What a name is shown as."""
        return name if name in self._known else OTHER

    @property
    def known(self) -> list[str]:
        """Those with a series of their own."""
        return list(self._known)

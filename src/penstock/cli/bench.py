"""`penstock bench`."""


def bench() -> None:
    """Measure speed against the raw limit of SQLite."""

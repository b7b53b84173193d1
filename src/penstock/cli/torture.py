"""`penstock torture`."""


def torture() -> None:
    """Kill and stall workers over many jobs, and account for every one."""

"""What a handler may return or raise besides a value: a closed set of outcomes."""


class Outcome(Exception):
    """Base of the outcomes; raise one or return one, the effect is the same."""


class Retry(Outcome):
    """Try again: `raise Retry(after=30, reason="warming up")`. Spends an attempt."""

    def __init__(self, after: float | None = None, reason: str = "the handler asked for a retry"):
        super().__init__(after, reason)
        self.after = after
        self.reason = reason


class Snooze(Outcome):
    """Come back later without spending an attempt: `return Snooze(60)`."""

    def __init__(self, seconds: float, reason: str = "the handler asked to be snoozed"):
        super().__init__(seconds, reason)
        self.seconds = seconds
        self.reason = reason


class Cancel(Outcome):
    """End the job as cancelled: `raise Cancel("the order was withdrawn")`."""

    def __init__(self, reason: str = "the handler cancelled the job"):
        super().__init__(reason)
        self.reason = reason


class Dead(Outcome):
    """Give up now, without retries: the job becomes a dead letter."""

    def __init__(self, reason: str = "the handler gave up"):
        super().__init__(reason)
        self.reason = reason

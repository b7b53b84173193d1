"""The order jobs are claimed in: when they fell due, plus a handicap per step of priority.

Because the handicap is time, waiting makes up for it: a job of priority 10 is overtaken by newer
jobs of priority 1 for nine steps at most, and then runs.
"""

PRIORITY_STEP_MS = 3_600_000


def rank(due_ms: int, priority: int) -> int:
    """Lower ranks are claimed first."""
    return due_ms + (priority - 1) * PRIORITY_STEP_MS

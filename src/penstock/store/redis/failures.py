"""A failure as scripts take it: the texts that are kept with a job, an execution, a dead letter."""

from msgspec.json import encode

from penstock.model.failure import Failure


def spelled(failure: Failure) -> dict[str, str]:
    """What is kept of a failure, by the names that the scripts use.

    `error` and `details` go to the job, `told` ends the execution's JSON array, and the rest
    belongs to the dead letter.
    """
    return {
        "reason": str(failure.error_class),
        "code": failure.code,
        "error": failure.message,
        "fingerprint": failure.fingerprint,
        "details": failure.details,
        "told": told(failure.error_class, failure.code, failure.message, failure.stack),
    }


def told(
    error_class: str | None, code: str | None, message: str | None, stack: str | None = None
) -> str:
    """The end of an execution's JSON array."""
    return encode((error_class, code, message, stack)).decode()[1:]

"""What a worker and the process of a job say to each other: length-prefixed msgpack."""

import msgspec

from penstock.app import context
from penstock.config import Settings
from penstock.model.job import Lease
from penstock.worker.child_process import framed
from penstock.worker.target import Place


class Application(msgspec.Struct, frozen=True, tag=True):
    """Where the child finds the application, and with which settings it runs."""

    places: tuple[Place, ...]
    settings: Settings


class Run(msgspec.Struct, frozen=True, tag=True):
    """Run this lease; `number` tells the words about it from those about an earlier one."""

    number: int
    lease: Lease


class Stop(msgspec.Struct, frozen=True, tag=True):
    """Somebody asked the job to stop."""


class Saved(msgspec.Struct, frozen=True, tag=True):
    """The checkpoint is durable."""


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The child has started."""


class Progress(msgspec.Struct, frozen=True, tag=True):
    """The handler reports progress."""

    run: int
    progress: context.Progress


class Log(msgspec.Struct, frozen=True, tag=True):
    """The handler logs a line; it is for the console, too, if it names its logger."""

    run: int
    level: str
    message: str
    logger: str | None = None


class Checkpoint(msgspec.Struct, frozen=True, tag=True):
    """The handler saves a checkpoint and waits."""

    run: int
    value: str


class Returned(msgspec.Struct, frozen=True, tag=True):
    """The handler returned; the value as JSON text."""

    run: int
    result: str
    cpu_ms: int
    memory_kb: int | None


class Raised(msgspec.Struct, frozen=True, tag=True):
    """The handler raised; the exception pickled by us, for us, never from a payload."""

    run: int
    error: bytes
    name: str
    text: str
    stack: str
    cpu_ms: int
    memory_kb: int | None


class NotFound(msgspec.Struct, frozen=True, tag=True):
    """The child cannot find the type; nothing was run."""

    run: int
    reason: str


ToChild = Application | Run | Stop | Saved
FromChild = Ready | Progress | Log | Checkpoint | Returned | Raised | NotFound

encode = msgspec.msgpack.Encoder().encode
to_child: "msgspec.msgpack.Decoder[ToChild]" = msgspec.msgpack.Decoder(ToChild)
from_child: "msgspec.msgpack.Decoder[FromChild]" = msgspec.msgpack.Decoder(FromChild)


def frame(message: ToChild | FromChild) -> bytes:
    """A message with its length in front."""
    return framed(encode(message))

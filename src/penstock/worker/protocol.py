"""What a worker and the process of a job say to each other: length-prefixed msgpack."""

import msgspec

from penstock.model.job import Lease

HEADER = 4


class Target(msgspec.Struct, frozen=True):
    """Where a child process finds the handler: a module, or the script that was run."""

    module: str
    qualname: str
    main_path: str | None
    url: str


class Run(msgspec.Struct, frozen=True, tag=True):
    """Run this lease; `number` tells the words about it from those about an earlier one."""

    number: int
    target: Target
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
    percent: float
    message: str | None


class Log(msgspec.Struct, frozen=True, tag=True):
    """The handler logs a line."""

    run: int
    level: str
    message: str


class Checkpoint(msgspec.Struct, frozen=True, tag=True):
    """The handler saves a checkpoint and waits."""

    run: int
    value: str


class Returned(msgspec.Struct, frozen=True, tag=True):
    """The handler returned; the value as JSON text."""

    run: int
    result: str
    cpu_ms: int
    memory_kb: int


class Raised(msgspec.Struct, frozen=True, tag=True):
    """The handler raised; the exception pickled by us, for us, never from a payload."""

    run: int
    error: bytes
    text: str
    stack: str
    cpu_ms: int
    memory_kb: int


ToChild = Run | Stop | Saved
FromChild = Ready | Progress | Log | Checkpoint | Returned | Raised

_encoder = msgspec.msgpack.Encoder()
to_child: "msgspec.msgpack.Decoder[ToChild]" = msgspec.msgpack.Decoder(ToChild)
from_child: "msgspec.msgpack.Decoder[FromChild]" = msgspec.msgpack.Decoder(FromChild)


def frame(message: ToChild | FromChild) -> bytes:
    """A message with its length in front."""
    body = _encoder.encode(message)
    return len(body).to_bytes(HEADER, "big") + body

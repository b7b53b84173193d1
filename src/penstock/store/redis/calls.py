"""The calls that one event loop makes: those that wait for an answer share the next round trip."""

import asyncio
from contextlib import suppress
from typing import Protocol

import redis

from penstock.store.redis.errors import translate
from penstock.store.redis.pipeline import Answer, Backoff, Command, Load, Pipeline


class Target(Protocol):
    """What calls are made to: a server, whichever node of it is the right one now."""

    backoff: Backoff
    generation: int

    @property
    def url(self) -> str:
        """Its URL."""
        ...

    async def connect(self) -> Pipeline:
        """Make a pipeline to the node that is the right one now."""
        ...

    def check(self) -> None:
        """Refuse calls to what is closed."""
        ...

    def failed(self) -> None:
        """Hear of a trip in vain."""
        ...


class Calls:
    """The pipeline of one event loop, made when it is first needed and whenever it is lost."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._loop = asyncio.get_running_loop()
        self._waiting: Load = []
        self._pipeline: Pipeline | None = None
        self._generation = -1
        self._connecting: asyncio.Task[Pipeline] | None = None
        self._detours: set[asyncio.Task[None]] = set()

    @property
    def is_over(self) -> bool:
        """Whether their event loop has ended."""
        return self._loop.is_closed()

    def send(self, command: Command) -> Answer:
        """Return the answer to come; it may be an error of redis-py."""
        answer: Answer = self._loop.create_future()
        if not self._waiting:
            pipeline = self._pipeline
            if pipeline is not None and pipeline.is_idle and self._goes_on(pipeline):
                pipeline.post(
                    [(command, answer)]
                )  # alone: a turn of the loop costs as much as it does
                return answer
            self._loop.call_soon(self._depart)
        self._waiting.append((command, answer))
        return answer

    async def close(self) -> None:
        """Let go once everything is answered."""
        await asyncio.gather(*self._detours, return_exceptions=True)
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.leave()
            await pipeline.lost()

    def drop(self) -> None:
        """Let go, asked by another event loop or after the end of this one."""
        pipeline = self._pipeline
        if pipeline is None:
            return
        if self.is_over:
            pipeline.abandon()
        else:
            with suppress(RuntimeError):  # it has ended in this moment
                self._loop.call_soon_threadsafe(pipeline.leave)

    def _depart(self) -> None:
        load, self._waiting = self._waiting, []
        pipeline = self._pipeline
        if pipeline is not None and self._goes_on(pipeline):
            pipeline.post(load)
        else:
            detour = self._loop.create_task(self._travel(load))
            self._detours.add(detour)
            detour.add_done_callback(self._detours.discard)

    async def _travel(self, load: Load) -> None:
        """Make the trip when a pipeline has to be made first, or the server failed a moment ago."""
        target = self._target
        try:
            target.check()
            if target.backoff.failures:
                await asyncio.sleep(target.backoff.seconds())
            pipeline = await self._connected()
        except (redis.RedisError, OSError) as error:
            target.failed()
            for _, answer in load:
                if not answer.done():
                    answer.set_exception(translate(target.url, error))
        except BaseException as error:
            for _, answer in load:
                if not answer.done():
                    answer.set_exception(error)
            if not isinstance(error, Exception):
                raise
        else:
            pipeline.post(load)
            load[-1][1].add_done_callback(self._answered)

    def _answered(self, answer: Answer) -> None:
        if not answer.cancelled() and answer.exception() is None:
            self._target.backoff.succeeded()

    def _goes_on(self, pipeline: Pipeline) -> bool:
        return self._is_right(pipeline) and not self._target.backoff.failures

    def _is_right(self, pipeline: Pipeline) -> bool:
        return pipeline.open and self._generation == self._target.generation

    async def _connected(self) -> Pipeline:
        """Return the pipeline, a new one if need be, made once for all who wait for it."""
        if self._pipeline is not None and self._is_right(self._pipeline):
            return self._pipeline
        if self._connecting is None:
            self._connecting = self._loop.create_task(self._replace_line())
            self._connecting.add_done_callback(self._has_connected)
        return await asyncio.shield(self._connecting)

    def _has_connected(self, connecting: "asyncio.Task[Pipeline]") -> None:
        self._connecting = None
        if not connecting.cancelled():
            connecting.exception()

    async def _replace_line(self) -> Pipeline:
        generation = self._target.generation
        pipeline = await self._target.connect()
        before, self._pipeline = self._pipeline, pipeline
        self._generation = generation
        if before is not None:
            before.leave()
        return pipeline

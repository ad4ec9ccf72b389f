"""Runs one attempt of a job: the handler under its timeout, and what its end means. Recording it is the recorder's work."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from tenure.db.engine import Database
from tenure.db.errors import LeaseLost, StorageUnavailable
from tenure.db.outcome import Ending, Finish
from tenure.workers.attempt import Attempt
from tenure.workers.backoff import Backoff
from tenure.workers.blocking import SyncJobContext
from tenure.workers.context import HandlerOptions, JobContext
from tenure.workers.errors import JobStopped, Permanent, RetryLater, StopReason
from tenure.workers.held import HeldJob
from tenure.workers.values import InvalidResult, clean_text, result_text

logger = logging.getLogger(__name__)

STOP_PATIENCE_SECONDS = 5.0
"""How long an async handler may take to end after it was cancelled; its outcome is recorded then all the same."""

MAX_RETRY_LATER_SECONDS = 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class Executor:
    """How attempts are run in this process."""

    database: Database
    backoff: Backoff
    options: HandlerOptions
    on_version: Callable[[UUID, int], None]

    async def run(self, held: HeldJob) -> tuple[Finish | None, asyncio.Future[Any] | None]:
        """Runs the handler to its end, or to where it has to be given up.

        Returns what is to be recorded (None: nothing, the lease is lost or the handler ended the job itself), and the
        handler if it is still running: its slot is taken until it ends.
        """
        attempt = Attempt(held, self.database, self.on_version)
        handler: asyncio.Future[Any] | None = None
        try:
            await attempt.check()
            params = held.kind.parse_params(held.job.params)
            context = JobContext(attempt, self.options)
            handler = self._start(held, context, params)
            result = await self._await_end(held, handler)
            finish = self._succeeded(held, result)
        except Exception as error:  # noqa: BLE001 - one of the four edges: whatever a handler raises becomes its outcome
            finish = self._failed(held, error)
        except JobStopped as stopped:
            finish = self._stopped(held, stopped.reason)
        if handler is not None and handler.done():
            handler = None
        if held.is_ended or held.is_lost:
            return None, handler
        return finish, handler

    def _start(self, held: HeldJob, context: JobContext, params: Any) -> asyncio.Future[Any]:
        if held.kind.is_async:
            return asyncio.ensure_future(_call(held, context, params))
        return _call_in_thread(held, SyncJobContext(context, asyncio.get_running_loop()), params)

    async def _await_end(self, held: HeldJob, handler: asyncio.Future[Any]) -> Any:
        """The handler's result; raises what it raised, or JobStopped for the reason that ended it."""
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        held.when_stopped(lambda: _set_soon(loop, stopped))
        waiting = asyncio.ensure_future(stopped.wait())
        try:
            await asyncio.wait({handler, waiting}, timeout=held.kind.timeout, return_when=asyncio.FIRST_COMPLETED)
            if not handler.done():
                held.stop(StopReason.TIMEOUT)
                if held.kind.is_async:
                    handler.cancel()
                    await asyncio.wait({handler}, timeout=STOP_PATIENCE_SECONDS)
        except asyncio.CancelledError:
            handler.cancel()
            raise
        finally:
            waiting.cancel()
            held.when_stopped(_nothing)
        if not handler.done():
            handler.add_done_callback(_swallow)
            raise JobStopped(held.reason or StopReason.TIMEOUT)
        if handler.cancelled():
            if held.reason is not None:
                raise JobStopped(held.reason)
            raise RuntimeError("The handler cancelled itself.")
        return handler.result()

    def _succeeded(self, held: HeldJob, result: Any) -> Finish:
        try:
            return Finish(held.id, held.token, Ending.SUCCEEDED, result=result_text(result))
        except InvalidResult as error:
            return self._finish(held, Ending.FAILED, "invalid_result", str(error))

    def _failed(self, held: HeldJob, error: Exception) -> Finish:
        if held.reason is not None and not isinstance(error, Permanent | RetryLater):
            return self._stopped(held, held.reason)  # raised on the way out after it was stopped
        match error:
            case LeaseLost():
                held.stop(StopReason.LEASE_LOST)
                return self._stopped(held, StopReason.LEASE_LOST)
            case Permanent():
                return self._finish(held, Ending.FAILED, error.code, error.message)
            case RetryLater():
                delay = min(max(error.seconds, 0.0), MAX_RETRY_LATER_SECONDS)
                return self._finish(held, Ending.RETRY, "retry_later", error.message, delay)
            case ValidationError() if error.title == held.kind.params_model.__name__:
                return self._finish(held, Ending.FAILED, "invalid_params", "The params do not fit the kind's schema any more.")
            case StorageUnavailable():
                return self._retry(held, "storage_unavailable", error.message)
            case _:
                # The exception's text may hold anything; the log has it, clients get its type.
                logger.warning("A handler failed", exc_info=error, extra={"job": str(held.id), "kind": held.job.kind})
                return self._retry(held, "handler_error", f"The handler raised {type(error).__name__}.")

    def _stopped(self, held: HeldJob, reason: StopReason) -> Finish:
        match reason:
            case StopReason.TIMEOUT:
                return self._retry(held, "timeout", f"The attempt took longer than {held.kind.timeout:g} seconds.")
            case StopReason.CANCELLED:
                return Finish(held.id, held.token, Ending.CANCELLED)
            case StopReason.UNAUTHORIZED:
                message = "Its actor is no longer an enabled member with the role that this kind needs."
                return self._finish(held, Ending.FAILED, "actor_not_authorized", message)
            case StopReason.SHUTDOWN | StopReason.LEASE_LOST:  # of the latter nothing is recorded
                return Finish(held.id, held.token, Ending.RELEASED)

    def _retry(self, held: HeldJob, code: str, message: str) -> Finish:
        return self._finish(held, Ending.RETRY, code, message, self.backoff.delay_seconds(held.job.attempt))

    @staticmethod
    def _finish(held: HeldJob, ending: Ending, code: str, message: str, delay: float = 0.0) -> Finish:
        return Finish(
            held.id, held.token, ending, code=clean_text(code)[:100], message=clean_text(message), delay_seconds=delay
        )


async def _call(held: HeldJob, context: JobContext, params: Any) -> Any:
    handler: Any = held.kind.handler
    try:
        result: Awaitable[Any] = handler(context, params) if held.kind.takes_params else handler(context)
        return await result
    except (SystemExit, KeyboardInterrupt) as error:  # asyncio would end the worker with it
        raise RuntimeError(type(error).__name__) from error


def _call_in_thread(held: HeldJob, context: SyncJobContext, params: Any) -> asyncio.Future[Any]:
    """A daemon thread of its own: a pool's threads are waited for when the process ends, and this one may hang."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    handler: Any = held.kind.handler

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def run() -> None:
        result, failure = None, None
        try:
            result = handler(context, params) if held.kind.takes_params else handler(context)
        except BaseException as error:  # noqa: BLE001 - SystemExit too: it must not end as a success
            failure = error if isinstance(error, Exception | JobStopped) else RuntimeError(type(error).__name__)
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:
            logger.warning("A handler's thread ended after its worker", extra={"job": str(held.id)})

    threading.Thread(target=run, name=f"handler-{held.id}", daemon=True).start()
    return future


def _set_soon(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(event.set)


def _swallow(future: asyncio.Future[Any]) -> None:
    """Takes a late end's exception, which nobody waits for any more."""
    if not future.cancelled():
        future.exception()


def _nothing() -> None:
    return None

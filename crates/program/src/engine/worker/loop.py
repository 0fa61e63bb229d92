"""An event loop that waits only for timers and for the frames of this program."""

import asyncio
import heapq
from asyncio import events, tasks

from . import asking, channel, ending

# Loops that are not closed. A loop that the program no longer references may still have tasks.
_open = []


class Loop(asyncio.BaseEventLoop):
    """An event loop without sockets, threads and processes, which the sandbox forbids. It is reentrant, so that
    `asyncio.run` and `run_until_complete` also work in a program that awaits at its top level."""

    def __init__(self):
        super().__init__()
        _open.append(self)
        # Whether the last run succeeded.
        self._succeeded = True
        # The tasks that the program waits for at its end, and those that the engine knows of.
        self._finishing = None
        self._reported = None

    def close(self):
        super().close()
        if self in _open:
            _open.remove(self)

    def _run_once(self):
        scheduled, ready = self._scheduled, self._ready
        while scheduled and scheduled[0]._cancelled:
            self._timer_cancelled_count -= 1
            heapq.heappop(scheduled)._scheduled = False
        if self._timer_cancelled_count > 100 and self._timer_cancelled_count * 2 > len(scheduled):
            for handle in scheduled:
                if handle._cancelled:
                    handle._scheduled = False
            scheduled[:] = [handle for handle in scheduled if not handle._cancelled]
            heapq.heapify(scheduled)
            self._timer_cancelled_count = 0
        if ready or self._stopping:
            wait = 0
        elif scheduled:
            wait = max(0, scheduled[0]._when - self.time())
        else:
            wait = None
        if self._finishing is not None and wait != 0:
            self._report_unfinished()
            if wait is None and not asking._sent:
                # No timer and no reply is pending, so no task can ever continue.
                self.stop()
                return
        if wait != 0 or asking._sent:
            frame = channel.receive(wait)
            while frame is not None:
                asking.deliver(frame)
                frame = channel._take()
        horizon = self.time() + self._clock_resolution
        while scheduled and scheduled[0]._when < horizon:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            ready.append(handle)
        for _ in range(len(ready)):
            # A nested run may have taken some of them.
            if not ready:
                break
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def run_until_complete(self, future):
        if not self.is_running():
            self._succeeded = False
            try:
                with _Suspended():
                    result = super().run_until_complete(future)
            except SystemExit as error:
                self._succeeded = ending.exit_message(error) is None
                raise
            self._succeeded = True
            return result
        self._check_closed()
        future = tasks.ensure_future(future, loop=self)
        current = tasks.current_task(self)
        if current is not None:
            tasks._leave_task(self, current)
        try:
            while not future.done():
                self._run_once()
        finally:
            if current is not None:
                tasks._enter_task(self, current)
        return future.result()

    def run_forever(self):
        with _Suspended():
            super().run_forever()

    def finish(self):
        """Runs until every task is done or can never be done. Raises the exception of a task if nothing retrieved it."""
        seen = []
        while True:
            left = sorted(asyncio.all_tasks(self), key=ending.line_of)
            if not left:
                break
            seen += left
            try:
                self._run_until_done(left)
            except _Stuck:
                ending.abandon(asyncio.all_tasks(self), "stuck")
                break
        for task in seen:
            if task.done() and not task.cancelled() and getattr(task, "_log_traceback", True):
                error = task.exception()
                if error is not None:
                    raise error

    def _run_until_done(self, left):
        done, missing = self.create_future(), len(left)

        def count_down(_):
            nonlocal missing
            missing -= 1
            if not missing and not done.done():
                done.set_result(None)

        for task in left:
            task.add_done_callback(count_down)
        self._finishing = left
        try:
            self.run_until_complete(done)
        except RuntimeError:
            if done.done():
                raise
            raise _Stuck from None
        finally:
            self._finishing = self._reported = None
            for task in left:
                task.remove_done_callback(count_down)

    def _report_unfinished(self):
        """Sends the running tasks to the engine, which lists them if it stops the program."""
        running = [task for task in self._finishing if not task.done()][: ending.MOST_UNFINISHED]
        if running != self._reported:
            self._reported = running
            channel.send(channel.UNFINISHED, ending.unfinished_now(running))

    def run_in_executor(self, executor, func, *args):
        """Runs the function immediately, because there are no threads."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def call_soon_threadsafe(self, callback, *args, context=None):
        return self.call_soon(callback, *args, context=context)

    def _process_events(self, event_list):
        pass

    def _write_to_self(self):
        pass

    async def _make_subprocess_transport(self, *args, **kwargs):
        raise PermissionError("programs cannot start processes")


class _Stuck(Exception):
    """Tasks remain, but none of them can continue."""


class _Suspended:
    """Suspends the running loop while another one runs."""

    def __enter__(self):
        self.running = events._get_running_loop()
        if self.running is not None:
            events._set_running_loop(None)

    def __exit__(self, *_):
        if self.running is not None:
            events._set_running_loop(self.running)


class Policy(asyncio.DefaultEventLoopPolicy if hasattr(asyncio, "DefaultEventLoopPolicy") else object):
    _loop_factory = Loop


def _suspending(function):
    def run(*args, **kwargs):
        with _Suspended():
            return function(*args, **kwargs)

    run.__name__ = run.__qualname__ = function.__name__
    run.__doc__ = function.__doc__
    return run


_cancel_all_tasks = asyncio.runners._cancel_all_tasks


def _finish_or_cancel(loop):
    """Replaces the end of `asyncio.run`. Python cancels the remaining tasks there, and silently loses calls."""
    try:
        finish(loop)
    finally:
        _cancel_all_tasks(loop)


def finish(loop):
    if not isinstance(loop, Loop) or loop.is_closed() or loop.is_running():
        return
    if loop._succeeded:
        loop.finish()
    else:
        ending.abandon(asyncio.all_tasks(loop), "cancelled")


def finish_all():
    """Finishes the loops that the program did not close."""
    for loop in list(_open):
        finish(loop)


def abandon_all():
    """Records the tasks of all loops as canceled, because the program failed."""
    for loop in list(_open):
        if not loop.is_closed():
            ending.abandon(asyncio.all_tasks(loop), "cancelled")


def install():
    asyncio.runners._cancel_all_tasks = _finish_or_cancel
    events._event_loop_policy = Policy()
    asyncio.run = asyncio.runners.run = _suspending(asyncio.run)
    if hasattr(asyncio, "Runner"):
        asyncio.Runner.run = _suspending(asyncio.Runner.run)

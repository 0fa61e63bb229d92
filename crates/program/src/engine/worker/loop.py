"""An event loop that waits for one thing only: the frames that arrive for this program."""

import asyncio
import heapq
from asyncio import events, tasks

from . import asking, channel


class Loop(asyncio.BaseEventLoop):
    """No sockets, no threads, no processes: those are not to be had. It can run inside of itself, so that
    `asyncio.run` and `run_until_complete` also work in a program that awaits at its top level."""

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
            # A loop inside of this one may have taken some of them.
            if not ready:
                break
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def run_until_complete(self, future):
        if not self.is_running():
            with _Aside():
                return super().run_until_complete(future)
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
        with _Aside():
            super().run_forever()

    def run_in_executor(self, executor, func, *args):
        """There are no threads, so it is done here and now."""
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


class _Aside:
    """Puts a running loop aside while another one runs."""

    def __enter__(self):
        self.running = events._get_running_loop()
        if self.running is not None:
            events._set_running_loop(None)

    def __exit__(self, *_):
        if self.running is not None:
            events._set_running_loop(self.running)


class Policy(asyncio.DefaultEventLoopPolicy if hasattr(asyncio, "DefaultEventLoopPolicy") else object):
    _loop_factory = Loop


def _aside(function):
    def run(*args, **kwargs):
        with _Aside():
            return function(*args, **kwargs)

    run.__name__ = run.__qualname__ = function.__name__
    run.__doc__ = function.__doc__
    return run


def install():
    events._event_loop_policy = Policy()
    asyncio.run = asyncio.runners.run = _aside(asyncio.run)
    if hasattr(asyncio, "Runner"):
        asyncio.Runner.run = _aside(asyncio.Runner.run)

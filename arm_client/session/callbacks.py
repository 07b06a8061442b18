"""Callbacks: one thread, started with the first callback, waits for all tasks that have callbacks.

Every callback is called exactly once: when its task ends or is released, or when the board is gone.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from hbrt.board.forked import notice
from hbrt.status import Status

if TYPE_CHECKING:
    from hbrt.attach.link import Link
    from hbrt.attach.tasks import Tasks

_IDLE_SECONDS = 0.5
Callback = Callable[[int], None]


class Notifier:
    """Calls the callbacks of finished tasks, in the order in which it finds them."""

    def __init__(self, link: Link, tasks: Tasks) -> None:
        self._link = link
        self._tasks = tasks
        self.watched: dict[int, list[Callback]] = {}  # by handle
        self._due: list[tuple[int, list[Callback]]] = []
        self._lock = threading.Lock()
        self._work = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._is_changed = False

    def add(self, handle: int, callback: Callback) -> None:
        """Call ``callback(status)`` when the task ends."""
        notice()
        with self._lock:
            is_late = self._is_closing
            if not is_late:
                self.watched.setdefault(handle, []).append(callback)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="hbrt-notifier", daemon=True)
                    self._thread.start()
        if is_late:
            _call(callback, self._last_word())
        else:
            self._wake()

    def discard(self, handle: int) -> None:
        """Drop the callbacks of a task: their owner has called them."""
        with self._lock:
            self.watched.pop(handle, None)

    def settle(self, handle: int) -> None:
        """Call the callbacks of a task that is about to be released, with its current status."""
        with self._lock:
            callbacks = self.watched.pop(handle, None)
            if callbacks is None:
                return
            has_ended = self._tasks.has_ended(handle)
            status = self._tasks.wait(handle, 1) if has_ended else Status.HB_DSP_TASK_RELEASED
            self._due.append((status, callbacks))
        self._wake()

    def close(self) -> None:
        """End the thread. Callbacks of unfinished tasks get the status of a lost board."""
        with self._lock:
            self._is_closing = True
        if self._thread is threading.current_thread():
            self._call_back()  # a callback detaches: run the other callbacks before the tables go
        elif self._thread is not None:
            self._wake()
            self._thread.join()

    def detach_in_child(self) -> None:
        """In a forked child: drop the thread and the callbacks, which are the parent's."""
        self._lock = threading.Lock()
        self._is_closing = True
        self._thread = None
        self.watched, self._due = {}, []

    def _wake(self) -> None:
        self._is_changed = True
        self._work.set()
        self._tasks.waiters.nudge()

    def _run(self) -> None:
        while not self._is_closing:
            if self.watched or self._due:
                self._tasks.waiters.sleep_until_any(self.watched, self._has_something)
            else:
                self._work.wait(_IDLE_SECONDS)
                self._work.clear()
            self._is_changed = False
            self._call_back()
        self._call_back()

    def _has_something(self) -> bool:
        return self._is_changed or any(map(self._tasks.has_ended, list(self.watched)))

    def _call_back(self) -> None:
        is_over = self._is_closing or bool(self._link.fault)
        with self._lock:
            calls, self._due = self._due, []
            ended = [handle for handle in self.watched if is_over or self._tasks.has_ended(handle)]
            for handle in ended:
                has_ended = self._tasks.has_ended(handle)
                status = self._tasks.wait(handle, 1) if has_ended else self._last_word()
                calls.append((status, self.watched.pop(handle)))  # from now on the task may be released
        for status, callbacks in calls:
            for callback in callbacks:
                _call(callback, status)

    def _last_word(self) -> int:
        return self._link.fault or Status.HB_DSP_NOT_RUNNING


def _call(callback: Callback, status: int) -> None:
    try:
        callback(status)
    except BaseException:  # noqa: BLE001 - one bad callback, or one that exits, must not silence the others
        traceback.print_exc()

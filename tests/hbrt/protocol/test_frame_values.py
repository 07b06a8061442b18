"""What the code that a thread stands in uses: its lock, the locks that it holds, the places that its loop reads."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from hbrt.protocol.frame_values import acquired, held, read_in_loop, variables
from tests.each import each
from tests.limits import PATIENCE_S

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 14), reason="its bytecode is another one: nothing is told")
LOCKS = [threading.Lock, threading.RLock]


class Box:
    """Something with a lock and a flag, and ways to wait for them."""

    def __init__(self, lock: Any = None) -> None:
        self.lock, self.flag, self.may_go = lock, bytearray(8), threading.Event()
        self.at = 3

    def by_with(self) -> None:
        with self.lock:
            pass

    def by_acquire(self) -> None:
        lock = self.lock
        if lock.acquire(timeout=PATIENCE_S):
            lock.release()

    def inside(self) -> None:
        with self.lock:
            try:
                self.may_go.wait()
            finally:
                pass

    def beside(self) -> None:
        with self.lock:
            pass
        with contextlib.suppress(ValueError):
            self.may_go.wait()

    def polls(self, view: bytearray) -> None:
        while view[0] == 0 and not self.may_go.is_set():
            pass

    def polls_by_variable(self, view: bytearray) -> None:
        at = 3
        while True:
            if view[at] or self.may_go.is_set():
                break
            time.sleep(0)

    def polls_a_slice(self, view: bytearray) -> None:
        while not any(view[2:4]) and not self.may_go.is_set():
            time.sleep(0)


@contextlib.contextmanager
def standing_in(way: Callable[..., None], *arguments: Any) -> Iterator[Callable[[], FrameType]]:
    """The frame of a function that runs in a thread."""
    thread = threading.Thread(target=way, args=arguments, daemon=True)
    thread.start()

    def frame() -> FrameType:
        while True:
            found: FrameType | None = sys._current_frames().get(thread.ident or 0)
            while found is not None:
                if found.f_code is way.__func__.__code__:  # type: ignore[attr-defined]
                    return found
                found = found.f_back

    yield frame
    way.__self__.may_go.set()  # type: ignore[attr-defined]
    thread.join()


@each("make", LOCKS)
@each("way, text", [("by_with", "self.lock"), ("by_acquire", "lock")])
def test_the_lock_that_a_thread_waits_for(make: Callable[[], Any], way: str, text: str) -> None:
    box = Box(make())
    box.lock.acquire()
    with standing_in(getattr(box, way)) as frame:
        while (found := acquired(frame())) is None:
            pass
        assert (found.value is box.lock, found.text) == (True, text)
        box.lock.release()


def test_a_lock_is_held_inside_of_its_block_alone() -> None:
    box = Box(threading.Lock())
    line = Box.inside.__code__.co_firstlineno + 1
    with standing_in(box.inside) as frame:
        while not (found := list(held(frame()))):
            pass
        assert [(one.value is box.lock, one.text, at) for one, at in found] == [(True, "self.lock", line)]
    box.may_go.clear()
    with standing_in(box.beside) as frame:
        while not box.may_go._cond._waiters:  # type: ignore[attr-defined]
            pass
        assert list(held(frame())) == []
        assert acquired(frame()) is None


@each("way, part", [(Box.polls, 0), (Box.polls_by_variable, 3), (Box.polls_a_slice, slice(2, 4))])
def test_what_a_loop_reads(way: Callable[..., None], part: object) -> None:
    box, view = Box(), bytearray(8)
    with standing_in(way.__get__(box), view) as frame:
        while not (found := [one for one in read_in_loop(frame()) if one.of.text == "view"]):
            pass
        assert {(one.of.value is view, one.part if isinstance(one.part, int) else str(one.part)) for one in found} == {
            (True, part if isinstance(part, int) else str(part))
        }


def test_code_that_stands_in_nothing_of_this_tells_nothing() -> None:
    frame = sys._getframe()
    assert (acquired(frame), list(held(frame)), list(read_in_loop(frame))) == (None, [], [])


def test_no_code_of_the_program_is_run() -> None:
    run: list[str] = []

    class Tempts:
        @property
        def flag(self) -> bytes:
            run.append("property")
            return bytes(8)

        def __getattribute__(self, name: str) -> Any:
            run.append(name)
            return super().__getattribute__(name)

    tempts, box = Tempts(), Box()

    def way(self: Box) -> None:
        while not self.may_go.is_set():
            self.at = tempts.flag[0] if self.at == 0 else 1

    with standing_in(way.__get__(box)) as frame:
        assert "tempts.flag" not in [one.of.text for one in read_in_loop(frame())]
        assert acquired(frame()) is None
    assert run == []


def test_variables_leave_no_trace_in_a_frame() -> None:
    class Thing:
        pass

    def way() -> tuple[dict[str, Any], int]:
        thing = Thing()
        before = sys.getrefcount(thing)
        return variables(sys._getframe()), sys.getrefcount(thing) - before

    names, more = way()
    assert (sorted(names), more) == (["Thing", "before", "thing"], 0) or more == 1

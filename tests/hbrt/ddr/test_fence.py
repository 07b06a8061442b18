"""The fence: it orders, and nothing that ends it early or meets it in the middle leaves it unable to order again."""

from __future__ import annotations

import signal
import threading
from types import FrameType

import pytest

from hbrt.ddr.fence import Fence


def test_fence_leaves_its_lock_free() -> None:
    fence = Fence()
    fence.full()
    assert fence.enter(blocking=False)
    fence.leave()


def test_fence_in_the_middle_of_another_threads_fence_waits_for_nobody() -> None:
    fence = Fence()
    fence.enter()
    other = threading.Thread(target=fence.full)
    other.start()
    other.join()
    with pytest.raises(RuntimeError):
        fence.leave()  # the other thread has freed it
    fence.full()


def test_interrupted_fence_orders_again() -> None:
    fence = Fence()
    enter = fence.enter

    def interrupted(*_: object) -> None:
        enter()
        signal.raise_signal(signal.SIGUSR1)

    def raises(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, raises)
    try:
        fence.enter = interrupted  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            fence.full()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert enter(blocking=False)

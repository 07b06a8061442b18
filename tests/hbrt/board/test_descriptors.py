"""File descriptors that run out: before libzmq would end the process, and where a daemon is started."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hbrt.board.descriptors import check_free
from hbrt.board.launch import FEWEST_FDS, DaemonConfig, launch
from hbrt.errors import BoardError, RequestRefusedError
from hbrt.status import Status
from tests.arm_client.session.few_descriptors import none_left


@contextlib.contextmanager
def only_free(count: int) -> Iterator[None]:
    """So many descriptors are free, though this process may have more than a board needs."""
    taken = [os.dup(0) for _ in range(FEWEST_FDS + count)]
    try:
        with none_left():
            for fd in taken[:count]:
                os.close(fd)
            yield
    finally:
        for fd in taken[:count]:
            with contextlib.suppress(OSError):
                os.fstat(fd)
                pytest.fail(f"The descriptor {fd} is left open.")
        for fd in taken[count:]:
            os.close(fd)


def test_as_many_as_there_are_are_found_and_none_is_kept() -> None:
    with only_free(3):
        check_free(3, "a test")
        with pytest.raises(RequestRefusedError, match="There are fewer than 4 file descriptors free for a test") as few:
            check_free(4, "a test")
        check_free(3, "a test")
    assert few.value.status == Status.HB_SYS_OUT_OF_MEMORY
    assert str(few.value).endswith("raise the limit of open files (ulimit -n), or close files.")


@pytest.mark.parametrize("count", range(2, 7))
def test_a_daemon_that_cannot_be_started_says_why_and_leaves_no_descriptor(tmp_path: Path, count: int) -> None:
    with only_free(count), pytest.raises(BoardError, match="Too many open files"):
        launch(DaemonConfig(str(tmp_path / "board")))

"""A fork's child notices what it is, once, whoever forked it and whatever the kernel can do."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from hbrt.board import forked

if TYPE_CHECKING:
    import pytest


def _in_child(fork: Callable[[], int], look: Callable[[], int]) -> int:
    """What ``look`` returns in a child; the exit code is how it says so."""
    pid = fork()
    if not pid:
        os._exit(look())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_c_code_forks_and_the_child_notices_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(forked, "_in_child", [lambda: calls.append(forked.mark[0])])

    def look() -> int:
        before = forked.mark[0]
        forked.notice()
        forked.notice()
        return 10 * before + 100 * (calls == [1]) + forked.mark[0]

    forked.notice()
    assert calls == []  # this process is no child
    assert _in_child(ctypes.PyDLL(None).fork, look) == 101


def test_a_kernel_that_empties_no_page_leaves_the_process_id(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(forked, "_in_child", [lambda: calls.append("noticed")])
    monkeypatch.setattr(forked, "_process", os.getppid())
    forked.notice()
    forked.notice()
    assert calls == ["noticed"]

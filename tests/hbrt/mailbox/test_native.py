"""The mailbox in C is used as it was built, or not at all."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from hbrt.mailbox import native as loader
from hbrt.mailbox.native import NativeMissingError, native
from hbrt.native.files import is_stale


def test_where_it_is_not_there_one_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    native.cache_clear()
    monkeypatch.setitem(sys.modules, "hbrt.native._mailbox", None)
    with pytest.raises(NativeMissingError, match=r"cannot be used: it does not load \(.*make native"):
        native()


def test_one_that_is_older_than_its_sources_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    native.cache_clear()
    monkeypatch.setattr(loader, "is_stale", lambda _: True)
    with pytest.raises(NativeMissingError, match="it is older than its sources"):
        native()
    built = tmp_path / "built.so"
    shutil.copyfile(__file__, built)
    assert not is_stale(str(built))
    os.utime(built, (0, 0))
    assert is_stale(str(built))

"""Which mailbox a process uses, and why."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from hbrt.mailbox import native as chooser
from hbrt.mailbox.native import NativeMissingError, native
from hbrt.native.files import is_stale
from tests.mailboxes import in_c


@in_c
def test_where_it_was_built_it_is_used_and_a_setting_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_NATIVE", "1")
    assert native()[1] == "in C"
    monkeypatch.setenv("HBRT_NATIVE", "0")
    assert native() == (None, "in Python: HBRT_NATIVE is 0")


def test_where_it_is_not_there_python_does_its_work_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hbrt.native._mailbox", None)
    monkeypatch.setenv("HBRT_NATIVE", "auto")
    module, why = native()
    assert module is None
    assert why.startswith("in Python; the one in C cannot be used: it does not load (")
    monkeypatch.setenv("HBRT_NATIVE", "1")
    with pytest.raises(NativeMissingError, match=r"HBRT_NATIVE is 1.*make native"):
        native()


@in_c
def test_one_that_is_older_than_its_sources_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(chooser, "is_stale", lambda _: True)
    monkeypatch.setenv("HBRT_NATIVE", "auto")
    assert native() == (None, "in Python; the one in C cannot be used: it is older than its sources")
    built = tmp_path / "built.so"
    shutil.copyfile(__file__, built)
    assert not is_stale(str(built))
    os.utime(built, (0, 0))
    assert is_stale(str(built))

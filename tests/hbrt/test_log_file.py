"""Reading a log from its end, and following it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hbrt import log_file
from hbrt.log_file import Follower, last_lines

LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=20))


@given(LINES, st.integers(0, 12), st.integers(1, 30), st.booleans())
def test_the_last_lines_are_the_files_last_lines(lines: list[str], count: int, chunk: int, ended: bool) -> None:  # noqa: FBT001
    text = "\n".join(lines) + ("\n" if ended and lines else "")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_file, "CHUNK_BYTES", chunk)
        path = Path(folder) / "log"
        path.write_bytes(text.encode())
        expected = text.removesuffix("\n").split("\n") if text else []
        assert last_lines(path, count).decode().split("\n")[:-1] == (expected[-count:] if count else [])


def test_the_last_lines_before_an_offset_leave_out_what_came_later(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\n")
    follower = Follower(path)
    end = follower.skip_to_end()
    with path.open("ab") as file:
        file.write(b"three\n")
    assert last_lines(path, 10, end) == b"one\ntwo\n"
    assert b"".join(follower.read()) == b"three\n"
    assert b"".join(follower.read()) == b""
    follower.close()

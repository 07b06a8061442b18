"""Reading a log from its end, and following it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from hbrt.board import log_file
from hbrt.board.log_file import Follower, bytes_since, last_lines, shorten, tail

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


class TestBoundedPieces:
    def test_whole_lines_that_fit(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        log.write_bytes(b"".join(b"line %03d\n" % number for number in range(100)))
        assert tail(log, 2, 1000) == (b"line 098\nline 099\n", 900, False)
        assert tail(log, 1000, 1000) == (log.read_bytes(), 900, False)
        for most_bytes in range(9, 40):
            part = tail(log, 1000, most_bytes)
            assert part.is_cut
            assert log.read_bytes().endswith(part.raw)
            assert part.raw.startswith(b"line ")
            assert most_bytes - 18 < len(part.raw) <= most_bytes

    def test_what_comes_later_and_a_log_that_was_cut(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        log.write_bytes(b"0123456789")
        assert bytes_since(log, 0, 4) == (b"0123", 4, False)
        assert bytes_since(log, 4, 100) == (b"456789", 10, False)
        assert bytes_since(log, 10, 100) == (b"", 10, False)
        log.write_bytes(b"new")
        assert bytes_since(log, 10, 100) == (b"new", 3, False)


class TestShorten:
    def test_the_last_whole_lines_stay(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        log.write_bytes(b"".join(b"line %03d\n" % number for number in range(100)))
        assert shorten(log, 900, 100) == 0
        assert log.stat().st_size == 900
        assert shorten(log, 899, 100) == 801
        assert log.read_bytes() == b"".join(b"line %03d\n" % number for number in range(89, 100))

    def test_who_appends_and_who_follows_go_on(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        with log.open("ab", buffering=0) as writer:
            writer.write(b"old\n" * 100)
            follower = Follower(log)
            assert len(b"".join(follower.read())) == 400
            assert shorten(log, 100, 20) > 300
            assert b"".join(follower.read()) == b""
            writer.write(b"new\n")
            assert b"".join(follower.read()) == b"new\n"
            follower.close()
        assert log.read_bytes().endswith(b"old\nnew\n")


@pytest.mark.parametrize(
    "use",
    [
        Follower,
        lambda path: last_lines(path, 1),
        lambda path: tail(path, 1, 10),
        lambda path: bytes_since(path, 0, 1),
        lambda path: shorten(path, 0, 0),
    ],
    ids=["follow", "last lines", "tail", "since", "shorten"],
)
def test_a_fifo_in_place_of_a_log_is_refused_and_not_waited_for(tmp_path: Path, use: Callable[[Path], object]) -> None:
    path = tmp_path / "log"
    os.mkfifo(path)
    # Somebody has both its ends open, so that a mistake here fails and does not hang.
    theirs = os.open(path, os.O_RDWR)
    os.write(theirs, b"line\n")
    with pytest.raises(OSError, match=r"it is a FIFO.*; remove it"):
        use(path)
    os.close(theirs)

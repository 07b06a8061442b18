"""Ring files: the newest events of a process, whatever becomes of it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hbrt.board.paths import BoardPaths
from hbrt.trace.kinds import EventKind
from hbrt.trace.ring import SUFFIX, Recorded, Ring, RingError
from hbrt.trace.switch import Recorder, Switch, read, turn_off, turn_on


def only(directory: Path) -> Recorded:
    [path] = directory.glob(f"*{SUFFIX}")
    return Recorded(path)


def test_a_ring_keeps_the_newest_events_and_counts_the_others(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 1000, "program", "p.py")
    for number in range(700):
        ring.note(EventKind.ALLOC, number, number + 1, 7, 64)
    found = only(tmp_path)
    assert [event.start_ns for event in found.events()] == list(range(700))
    assert (found.lost, found.role, found.program, found.pid) == (0, "program", "p.py", os.getpid())
    for number in range(700, 5000):
        ring.note(EventKind.ALLOC, number, number + 1, 7, 64)
    kept = [event.start_ns for event in found.events()]
    assert kept == list(range(5000 - len(kept), 5000))
    assert len(kept) > 900
    assert found.lost == 5000 - len(kept)
    assert found.first_ns() == kept[0]
    ring.path.unlink()  # as a new trace does
    assert [event.start_ns for event in found.events()] == kept


def test_events_have_their_thread_and_text(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 64, "program")
    ring.note(EventKind.FLUSH, 1, 2, text=ring.text("clean"))
    other = threading.Thread(target=lambda: ring.note(EventKind.FLUSH, 3, 4, text=ring.text("ünclean")), name="wörker")
    other.start()
    other.join()
    found = only(tmp_path)
    first, second = found.events()
    assert (first.text, second.text) == ("clean", "ünclean")
    assert (found.threads[first.thread], found.threads[second.thread]) == ("MainThread", "wörker")


def test_numbers_that_are_too_large_are_cut_and_texts_without_room_are_empty(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 64, "program")
    ring.note(EventKind.SUBMIT, 1, 2, -3, 1 << 70, 0, 70_000, d=1 << 40)
    numbers = [ring.text(f"{number:>400}") for number in range(1000)]
    assert numbers[0] > 0
    assert numbers[-1] == 0
    [event] = only(tmp_path).events()
    assert (event.a, event.b, event.unit) == ((1 << 64) - 3, 0, 70_000 & 0xFFFF)


def test_what_a_killed_process_has_noted_is_there(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom hbrt.trace.ring import Ring\n"
        "ring = Ring(Path(sys.argv[1]), 64, 'program')\n"
        "for number in range(1, 41): ring.note(3, number, number)\n"
        "print('noted', flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert [event.start_ns for event in only(tmp_path).events()] == list(range(1, 41))


@pytest.mark.parametrize("raw", [b"", b"nonsense", b"\0" * 400_000, b"HBRTRING" + b"\xff" * 400_000])
def test_other_files_are_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / f"x{SUFFIX}"
    path.write_bytes(raw)
    with pytest.raises(RingError):
        Recorded(path)


def test_nonsense_in_a_ring_loses_no_more_than_itself(tmp_path: Path) -> None:
    ring = Ring(tmp_path, 64, "program")
    for number in range(1, 11):
        ring.note(EventKind.ALLOC, number, number)
    ring.map[ring.start + 3 * 64 : ring.start + 4 * 64] = b"\xa5" * 64
    ring.map[ring.start + 5 * 64 + 56 : ring.start + 6 * 64] = bytes(8)
    assert [event.start_ns for event in only(tmp_path).events()] == [1, 2, 4, 6, 7, 8, 9, 10]


def test_a_ring_without_room_is_none_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    recorder = Recorder(lambda: Switch(tmp_path, 64), "program", "p.py")
    assert (recorder.look(), recorder.ring) == (True, None)
    assert not list(tmp_path.iterdir())


def test_a_process_that_has_missed_the_end_of_a_trace_takes_part_in_the_next(tmp_path: Path) -> None:
    board = BoardPaths(tmp_path)
    recorder = Recorder(lambda: read(board), "program", "p.py")
    assert (recorder.look(), recorder.ring) == (False, None)
    rings = []
    for begun_ns in (1, 2):
        turn_on(board, Switch(tmp_path, 64, begun_ns))
        assert (recorder.look(), recorder.look()) == (True, False)
        rings.append(recorder.ring)
    assert rings[0] is not rings[1] is not None
    turn_off(board)
    assert (recorder.look(), recorder.ring) == (True, None)

"""Stacks come out of their text as they went in, and nothing else does."""

from __future__ import annotations

import faulthandler
import tempfile

from hbrt.protocol.stacks import Frame, Wait, frames_of, text_of, waits_of

MAIN, HELPER = Frame('/a "b"/arm.py', 63, "main"), Frame("x.py", 1, "<module>")


def test_what_faulthandler_writes_is_read() -> None:
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=False)
        file.seek(0)
        innermost = frames_of(file.read())[0]
    assert innermost.file == __file__
    assert innermost.function == "test_what_faulthandler_writes_is_read"


def test_waits_come_back() -> None:
    waits = (Wait(19, (MAIN, HELPER)), Wait(-1, ()), Wait(3, (HELPER,)))
    assert waits_of(text_of(waits, 4096)) == waits


def test_a_long_text_is_cut_at_a_frame() -> None:
    waits = [Wait(slot, (MAIN,) * 9) for slot in range(9)]
    for most in range(0, 1000, 7):
        text = text_of(waits, most)
        assert len(text) <= most
        assert all(wait.stack in [(MAIN,) * count for count in range(10)] for wait in waits_of(text))


def test_nonsense_is_no_wait() -> None:
    assert waits_of("") == ()
    assert waits_of('  File "x", line 1 in f\nWaits for slot many\n\x00') == ()
    assert waits_of("Waits for slot 5\nhello\n  File x, line 1 in f") == (Wait(5, ()),)

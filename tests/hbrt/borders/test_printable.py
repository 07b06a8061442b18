"""The text of others on its way to a terminal."""

from __future__ import annotations

import os

from hypothesis import given, strategies

from hbrt.borders.printable import LINES, printable


def test_what_a_terminal_obeys_is_escaped_and_text_stays() -> None:
    assert printable("\x1b]0;owned\x07\x1b[2J") == r"\x1b]0;owned\x07\x1b[2J"
    assert printable("a\nb\tc\r\x9b1m") == r"a\nb\tc\r\x9b1m"
    assert printable("a\nb\tc\r", LINES) == "a\nb\tc\\r"
    assert printable("pro\u202eg.py\u2028") == r"pro\u202eg.py\u2028"
    assert printable(os.fsdecode(b"prog\xff.py")) == r"prog\xff.py"
    assert printable("\ud800") == r"\ud800"
    assert printable("算子\u3000é 🙂") == "算子\u3000é 🙂"


@given(strategies.text(strategies.characters()))
def test_any_text_becomes_a_line_that_can_be_sent(text: str) -> None:
    made = printable(text)
    made.encode()
    assert len(made.splitlines()) <= 1
    assert not any(ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 for letter in made)
    assert printable(made) == made

"""The single rule for foreign text (names, paths, findings) on its way to a terminal, a log or a message."""

from __future__ import annotations

import unicodedata

LINES = "\n\t"
"""Characters that multi-line text keeps; see ``printable``."""


def printable(text: str, keep: str = "") -> str:
    r"""Return the text with each non-printable character escaped, as in ``\x1b`` and ``\n``.

    It contains no escape sequences, a line stays one line, and it can be encoded in any Unicode encoding: bytes of a
    file name that are not UTF-8 (``os.fsdecode``) are written ``\xff``.

    Args:
        text: Any text.
        keep: Characters left unchanged: ``LINES`` for multi-line text.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in keep or unicodedata.category(letter) == "Zs" else _escaped(letter)
        for letter in text
    )


def _escaped(letter: str) -> str:
    if "\udc80" <= letter <= "\udcff":
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode()

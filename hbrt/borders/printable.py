"""The one rule for text of others (names, paths, findings) on its way to a terminal, a log or a message."""

from __future__ import annotations

import unicodedata

LINES = "\n\t"
"""What a text of several lines keeps; see ``printable``."""


def printable(text: str, keep: str = "") -> str:
    r"""Return the text with each character that does not print escaped, as in ``\x1b`` and ``\n``.

    A terminal obeys no escape sequence in it, a line of it stays one line, and any encoding of Unicode can hold it: the
    bytes of a file's name that are no UTF-8 (``os.fsdecode``) are written ``\xff``.

    Args:
        text: Any text.
        keep: Characters that stay as they are: ``LINES`` for a text that may have several lines.
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

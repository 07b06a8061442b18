"""A refusal: its status and its sentence; and the sentence behind the last status that a thread got."""

from __future__ import annotations

import threading

from hbrt.errors import RequestRefusedError

__all__ = ["RequestRefusedError", "last_error", "note"]

_texts = threading.local()


def note(status: int, sentence: str) -> int:
    """Remember the sentence of a refusal; returns the status, as a plain int."""
    _texts.text = sentence
    return int(status)


def last_error() -> str:
    """Sentence of the last call that failed in this thread: what was wrong, with the value, and what to do.

    Emulator: the board has no such call; its library prints to the console.
    """
    return getattr(_texts, "text", "")

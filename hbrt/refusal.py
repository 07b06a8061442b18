"""A request that was refused: its status and the sentence."""

from __future__ import annotations


class RequestRefusedError(Exception):
    """Whoever was asked refused, or is not there; ``status`` says which, the text why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status

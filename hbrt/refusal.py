"""A request that was refused: its status and the sentence."""

from __future__ import annotations


class RequestRefusedError(Exception):
    """The daemon refused a request, or is not there: the status and the sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status

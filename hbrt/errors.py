"""A request that was refused: its status and the sentence."""

from __future__ import annotations


class RequestRefusedError(Exception):
    """Whoever was asked refused, or is not there; ``status`` says which, the text why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class BoardError(RuntimeError):
    """Something about a board's directory or its daemon is not as it must be; the message says what to do."""


class WrongUseError(BoardError):
    """What was asked does not fit the board's name or state; nothing was changed."""


class BoardBusyError(WrongUseError):
    """Another daemon holds the board."""


class NotRunningError(WrongUseError):
    """No daemon serves the board."""


class DidNotStartError(BoardError):
    """A daemon did not come to run; ``status`` says whose fault it was, the text why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class NoDaemonError(BoardError):
    """No daemon runs on the board."""


class RefusedError(BoardError):
    """The daemon refused a request, or did not answer; ``status`` says which, the text why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status

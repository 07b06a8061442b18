"""Errors with a message, and with a status if a call would have returned one."""

from __future__ import annotations


class StatusError(Exception):
    """A call was refused or failed; ``status`` is the code that a C name returns for it, ``text`` the message."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.text = sentence


class RequestRefusedError(StatusError):
    """A request was refused, or not answered."""


class BoardError(RuntimeError):
    """A board's directory or its daemon is in a wrong state; the message says what to do."""


class WrongUseError(BoardError):
    """A request does not match the board's name or state; nothing was changed."""


class BoardBusyError(WrongUseError):
    """Another daemon holds the board."""


class NotRunningError(WrongUseError):
    """No daemon serves the board."""


class DidNotStartError(StatusError, BoardError):
    """A daemon did not start: ``status`` says whose fault it was, the text explains why."""


class NoDaemonError(BoardError):
    """No daemon is running on the board."""


class RefusedError(RequestRefusedError, BoardError):
    """The daemon, or the relay of a board on another machine, refused a request or did not answer."""

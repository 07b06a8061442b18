"""Refusals of models: a vendor-neutral reason and its message. Each API maps reasons to its own codes."""

from __future__ import annotations

from enum import Enum, auto

_MAX_LINE = 600


class Reason(Enum):
    """Why a model was refused, or its run failed."""

    UNREADABLE = auto()  # the file cannot be opened
    INVALID = auto()  # the bytes are damaged or not a model
    INCOMPATIBLE = auto()  # a valid model that is not supported
    UNKNOWN_OP = auto()  # it has an operator that neither onnxruntime nor a layer runs
    NO_MEMORY = auto()
    RUN_FAILED = auto()


class GraphError(Exception):
    """A model was refused, or its run failed; the text says why and what to do."""

    def __init__(self, reason: Reason, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason


def invalid(sentence: str) -> GraphError:
    """The bytes are damaged or not a model."""
    return GraphError(Reason.INVALID, sentence)


def incompatible(sentence: str) -> GraphError:
    """A valid model that is not supported."""
    return GraphError(Reason.INCOMPATIBLE, sentence)


def one_line(error: BaseException) -> str:
    """Return the text of a library's exception on one line, for a message."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _MAX_LINE else f"{text[:_MAX_LINE]}..."

"""Refusals of models: a reason that names no vendor's code, and its sentence. Each API has its own code for each."""

from __future__ import annotations

from enum import Enum, auto


class Reason(Enum):
    """Why a model was refused, or its run failed."""

    UNREADABLE = auto()  # the file cannot be opened
    INVALID = auto()  # the bytes are damaged or are no model
    INCOMPATIBLE = auto()  # a sound model that cannot be carried
    UNKNOWN_OP = auto()  # one that has an operator which neither onnxruntime nor a layer runs
    NO_MEMORY = auto()
    RUN_FAILED = auto()


class GraphError(Exception):
    """A model was refused, or its run failed; the text is a sentence that says why and what to do."""

    def __init__(self, reason: Reason, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason


def invalid(sentence: str) -> GraphError:
    """The bytes are damaged or are no model."""
    return GraphError(Reason.INVALID, sentence)


def incompatible(sentence: str) -> GraphError:
    """A sound model that cannot be carried."""
    return GraphError(Reason.INCOMPATIBLE, sentence)


def one_line(error: BaseException, most: int = 600) -> str:
    """Text of a library's exception on one line, for a sentence."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= most else f"{text[:most]}..."

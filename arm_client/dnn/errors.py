"""Refusals of the DNN runtime: a status and its sentence, raised inside, returned by the C names."""

from __future__ import annotations

from arm_client.errors import HbrtError
from hbrt.status import Status


class ModelError(HbrtError):
    """A model, an argument or a task was refused. ``status`` is an HB_DNN_* code, the text says why and what to do."""

    def __str__(self) -> str:
        return self.text


def bad_argument(sentence: str) -> ModelError:
    """HB_DNN_INVALID_ARGUMENT with its sentence."""
    return ModelError(Status.HB_DNN_INVALID_ARGUMENT, sentence)


def invalid(sentence: str) -> ModelError:
    """HB_DNN_INVALID_MODEL: the bytes are damaged or are no model."""
    return ModelError(Status.HB_DNN_INVALID_MODEL, sentence)


def incompatible(sentence: str) -> ModelError:
    """HB_DNN_INCOMPATIBLE_MODEL: a sound model that this runtime cannot carry."""
    return ModelError(Status.HB_DNN_INCOMPATIBLE_MODEL, sentence)


def one_line(error: BaseException, most: int = 600) -> str:
    """Text of a library's exception on one line, for a sentence."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= most else f"{text[:most]}..."

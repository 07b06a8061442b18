"""Errors of the DNN runtime: a status and its message, raised internally, returned by the C names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from arm_client.errors import HbrtError
from hbrt.borders.interrupts import let_out
from hbrt.models.errors import GraphError, Reason, one_line
from hbrt.status import Status

__all__ = ["ModelError", "bad_argument", "incompatible", "invalid", "of_graph", "one_line", "refusals"]

_CODES = {
    Reason.UNREADABLE: Status.HB_DNN_CAN_NOT_OPEN_FILE,
    Reason.INVALID: Status.HB_DNN_INVALID_MODEL,
    Reason.INCOMPATIBLE: Status.HB_DNN_INCOMPATIBLE_MODEL,
    Reason.UNKNOWN_OP: Status.HB_DNN_INCOMPATIBLE_MODEL,
    Reason.NO_MEMORY: Status.HB_DNN_OUT_OF_MEMORY,
    Reason.RUN_FAILED: Status.HB_DNN_RUN_TASK_FAILED,
}


class ModelError(HbrtError):
    """A model, an argument or a task was refused. ``status`` is an HB_DNN_* code, the text says why and what to do."""

    def __str__(self) -> str:
        return self.text


def bad_argument(sentence: str) -> ModelError:
    """Return HB_DNN_INVALID_ARGUMENT with its message."""
    return ModelError(Status.HB_DNN_INVALID_ARGUMENT, sentence)


def invalid(sentence: str) -> ModelError:
    """HB_DNN_INVALID_MODEL: the bytes are damaged or not a model."""
    return ModelError(Status.HB_DNN_INVALID_MODEL, sentence)


def incompatible(sentence: str) -> ModelError:
    """HB_DNN_INCOMPATIBLE_MODEL: a valid model that this runtime does not support."""
    return ModelError(Status.HB_DNN_INCOMPATIBLE_MODEL, sentence)


@contextmanager
def refusals() -> Iterator[None]:
    """Translate errors about a model into this API's codes; also a decorator.

    Raises:
        ModelError: instead of a GraphError.
    """
    try:
        yield
    except GraphError as error:
        let_out(error)
        raise of_graph(error) from error


def of_graph(error: GraphError) -> ModelError:
    """Return the error for a refused model, with this API's code."""
    text = str(error)
    if error.reason is Reason.UNKNOWN_OP:
        text += (
            " If it is your own op, register its layer first: hbDNNRegisterLayerCreator, or a plugin in "
            "HB_DNN_PLUGIN_PATH with HB_DNN_ENABLE_DSP=1."
        )
    return ModelError(_CODES[error.reason], text)

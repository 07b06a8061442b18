"""The error of a rejected RKNN call: a code of the C API, and the logged message."""

from __future__ import annotations

from hbrt.errors import StatusError
from rknn_api.types import RknnStatus as RknnStatus


class RknnError(StatusError):
    """A call was rejected. ``status`` is an RknnStatus, ``text`` gives the error and the remedy."""


def invalid_parameter(sentence: str) -> RknnError:
    """RKNN_ERR_PARAM_INVALID with its message."""
    return RknnError(RknnStatus.RKNN_ERR_PARAM_INVALID, sentence)


def invalid_model(sentence: str) -> RknnError:
    """RKNN_ERR_MODEL_INVALID with its message."""
    return RknnError(RknnStatus.RKNN_ERR_MODEL_INVALID, sentence)

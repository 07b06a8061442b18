"""What a call of RKNN returns when it is refused: a code of the C API, and the sentence that is logged."""

from __future__ import annotations

from hbrt.errors import StatusError
from rknn_api.types import RknnStatus as RknnStatus


class RknnError(StatusError):
    """A call was refused. ``status`` is an RknnStatus, ``text`` says what was wrong and what to do."""


def invalid_parameter(sentence: str) -> RknnError:
    """RKNN_ERR_PARAM_INVALID with its sentence."""
    return RknnError(RknnStatus.RKNN_ERR_PARAM_INVALID, sentence)


def invalid_model(sentence: str) -> RknnError:
    """RKNN_ERR_MODEL_INVALID with its sentence."""
    return RknnError(RknnStatus.RKNN_ERR_MODEL_INVALID, sentence)

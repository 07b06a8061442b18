"""What a call of RKNN returns when it is refused: a code of the C API, and the sentence that is logged."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from hbrt.errors import StatusError

if TYPE_CHECKING:

    def __getattr__(name: str) -> RknnStatus: ...


class RknnStatus(IntEnum):
    """Return codes of the C API. The Python API returns 0 or -1 alone, and logs the sentence.

    Source: RKNN C API Reference (2.3.2), return codes, https://github.com/airockchip/rknn-toolkit2
    Emulator: the numbers of RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL and RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE.
    """

    RKNN_SUCC = 0
    RKNN_ERR_FAIL = -1
    RKNN_ERR_TIMEOUT = -2
    RKNN_ERR_DEVICE_UNAVAILABLE = -3
    RKNN_ERR_MALLOC_FAIL = -4
    RKNN_ERR_PARAM_INVALID = -5
    RKNN_ERR_MODEL_INVALID = -6
    RKNN_ERR_CTX_INVALID = -7
    RKNN_ERR_INPUT_INVALID = -8
    RKNN_ERR_OUTPUT_INVALID = -9
    RKNN_ERR_DEVICE_UNMATCH = -10
    RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL = -11
    RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION = -12
    RKNN_ERR_TARGET_PLATFORM_UNMATCH = -13
    RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE = -14


# The flat names of C: the same objects as the members.
globals().update(RknnStatus.__members__)


class RknnError(StatusError):
    """A call was refused. ``status`` is an RknnStatus, ``text`` says what was wrong and what to do."""


def invalid_parameter(sentence: str) -> RknnError:
    """RKNN_ERR_PARAM_INVALID with its sentence."""
    return RknnError(RknnStatus.RKNN_ERR_PARAM_INVALID, sentence)


def invalid_model(sentence: str) -> RknnError:
    """RKNN_ERR_MODEL_INVALID with its sentence."""
    return RknnError(RknnStatus.RKNN_ERR_MODEL_INVALID, sentence)

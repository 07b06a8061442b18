"""Errors of ops and images.

An op should raise ParameterError for a wrong call: the caller gets its message. Others come with their traceback.
"""

from __future__ import annotations

from hbrt.errors import StatusError
from hbrt.status import Status


class ImageError(StatusError, ValueError):
    """An image cannot be used: the text says why; ``status`` distinguishes a wrong path from a wrong program."""

    status: Status = Status.HB_DSP_RUN_TASK_FAILED

    def __init__(self, sentence: str, status: Status | None = None) -> None:
        super().__init__(self.status if status is None else status, sentence)


class ImageLateError(ImageError):
    """An image did not call ``hb_dsp_start`` within its time limit."""

    status = Status.HB_DSP_TIMEOUT


class ParameterError(ValueError):
    """A parameter breaks a rule of the op; the message has the parameter, its value and the rule.

    The task fails with HB_DSP_RUN_TASK_FAILED, as for any exception, but its text is a sentence instead of a traceback.
    """

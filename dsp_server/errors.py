"""How an op says that the call is wrong, not the op: by a sentence; any other exception is told with its traceback."""

from __future__ import annotations


class ParameterError(ValueError):
    """What the caller gave breaks a rule of the op; the message names it, its value and what is allowed.

    The task fails with HB_DSP_RUN_TASK_FAILED, as by any exception, but its text is one sentence with no traceback.
    """

"""An op's exception for a wrong call: the caller gets its sentence. Any other exception comes with its traceback."""

from __future__ import annotations


class ParameterError(ValueError):
    """A parameter breaks a rule of the op; the message names the parameter, its value and the rule.

    The task fails with HB_DSP_RUN_TASK_FAILED, as for any exception, but its text is one sentence without a traceback.
    """

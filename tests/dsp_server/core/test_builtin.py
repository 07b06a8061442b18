"""What a caller is told of an exception in an op."""

from __future__ import annotations

import pytest

from dsp_server.core.builtin import explain
from dsp_server.errors import ParameterError
from hbrt.cv.image import CvRuleError
from hbrt.status import Status


@pytest.mark.parametrize("kind", [ParameterError, CvRuleError])
def test_a_refusal_is_one_sentence(kind: type[ValueError]) -> None:
    error = kind("count is 0: give 1 or more.")
    said = "refused the call: count is 0: give 1 or more."
    assert explain(error, "") == (Status.HB_DSP_RUN_TASK_FAILED, f"The op {said}")
    named = explain(error, "The range is not in a live block.", "moving (command 0x1000)")
    assert named == (
        Status.HB_DSP_RUN_TASK_FAILED,
        f"moving (command 0x1000) {said} The range is not in a live block.",
    )


def test_another_value_error_keeps_its_traceback() -> None:
    status, text = explain(ValueError("cannot reshape"), "")
    assert status == Status.HB_DSP_RUN_TASK_FAILED
    assert text.endswith("ValueError: cannot reshape")

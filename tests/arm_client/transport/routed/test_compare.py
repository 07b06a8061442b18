"""The first difference between two boards' bytes."""

from __future__ import annotations

import numpy as np

from arm_client.transport.routed.compare import first_difference, unlike_ends
from arm_client.transport.routed.other_board import Ended


def test_the_first_byte_and_with_a_dtype_the_first_element() -> None:
    here = np.arange(16, dtype=np.uint8)
    there = here.copy()
    assert first_difference(here, there) is None
    there[[6, 9, 10]] = 0xFF
    found = first_difference(here, there)
    assert found is not None
    assert found.offset == 6
    assert found.text == (
        "byte 6 is 0x06 here and 0xff there (from there 06 07 08 09 0a 0b 0c 0d here, ff 07 08 ff ff 0b 0c 0d there); "
        "3 of 16 bytes differ"
    )
    found = first_difference(here, there, np.int16)
    assert found is not None
    assert found.text == "element 3 (int16, byte 6) is 1798 here and 2047 there; 3 of 8 elements differ"
    assert first_difference(here[:7], there[:7], np.int16) == first_difference(here[:7], there[:7])


def test_ends_with_another_status() -> None:
    text = unlike_ends(Ended(0, ""), Ended(-6000268, "Traceback"))
    assert text == "it ended with 0 here and with -6000268 (HB_DSP_RUN_TASK_FAILED) there\nThere: Traceback"

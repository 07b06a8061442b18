"""Codes are the same in Python, in C, and in the profile of a board that has them."""

import re

from fastrpc.wire.aee import DSP_ERROR, Aee
from hbrt.profiles.profile import find
from tools.docs_aee import HEADERS, text


def test_codes_in_c() -> None:
    for header, offset in HEADERS.items():
        assert header.read_text(encoding="utf-8") == text(offset), "run: python -m tools.docs_aee"


def test_codes_of_the_profile() -> None:
    assert find("sd865").codes == {name: one.value for name, one in Aee.__members__.items()}


def test_names_with_the_same_number_have_their_own_sentences() -> None:
    for offset, number in ((0, "104"), (DSP_ERROR, r"\(\(int\)\(AEE_EOFFSET \+ 104u\)\)")):
        assert re.search(rf"AEE_ENORPCMEMORY {number} /\* Out of shared memory\. \*/", text(offset))
        assert "AEE_ECONNRESET 104 /* The domain of the handle has ended. */" in text(offset)

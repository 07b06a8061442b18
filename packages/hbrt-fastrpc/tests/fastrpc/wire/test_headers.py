"""Codes are the same in Python, in C, and in the profile of a board that has them."""

from fastrpc.wire.aee import Aee
from hbrt.profiles.profile import find
from tools.docs_aee import HEADERS, text


def test_codes_in_c() -> None:
    for header, offset in HEADERS.items():
        assert header.read_text(encoding="utf-8") == text(offset), "run: python -m tools.docs_aee"


def test_codes_of_the_profile() -> None:
    assert find("sd865").codes == {name: one.value for name, one in Aee.__members__.items()}

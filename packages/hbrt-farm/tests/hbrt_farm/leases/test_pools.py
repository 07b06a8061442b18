"""A pool as it is written on a command line."""

from pathlib import Path

import pytest

from hbrt.errors import WrongUseError
from hbrt_farm.leases.pools import Pool, parse_pool
from tests.each import each


def test_a_pool_with_its_options(tmp_path: Path) -> None:
    image = tmp_path / "image.py"
    image.touch()
    assert parse_pool("big=3") == Pool("big", 3)
    assert parse_pool(f"big=3,profile=sd865,image={image}") == Pool("big", 3, str(image), "sd865")


@each(
    "text, part",
    [
        ("big", "'' of the pool 'big' is not a number"),
        ("=2", "'' of the pool '=2' is not a valid pool name"),
        ("big=0", "'0' of"),
        ("big=65", "'65' of"),
        ("b/g=2", "'b/g' of"),
        ("big=2,image=nowhere.py", "'nowhere.py' of the pool 'big=2,image=nowhere.py' is not a file"),
        ("big=2,core=1", "'core=1' of"),
        ("big=2,profile=a,profile=b", "'profile=b' of"),
    ],
)
def test_a_wrong_one_gets_a_sentence_with_the_faulty_part(text: str, part: str) -> None:
    with pytest.raises(WrongUseError) as told:
        parse_pool(text)
    assert part in str(told.value)

"""Which version of Hexagon code a compiler's arguments ask for."""

from __future__ import annotations

import pytest

from hbrt.native.hexagon_flags import hexagon_flags, version_in


@pytest.mark.parametrize(
    ("given", "version", "rest"),
    [
        (("-O2", "a.c"), 67, ("-O2", "a.c")),
        (("-mv73", "-mhvx", "-mhvx-length=128B", "-mhmx", "a.c"), 73, ("a.c",)),
        (("-mcpu=hexagonv68+hvxv68", "-mv81", "-mllvm"), 81, ("-mllvm",)),
    ],
)
def test_the_last_version_counts(given: tuple[str, ...], version: int, rest: tuple[str, ...]) -> None:
    assert version_in(given) == (version, rest)


def test_a_version_has_its_units_and_no_later_ones() -> None:
    old, new = (hexagon_flags(version)[0] for version in (67, 73))
    assert ("+hvxv67" in old, "+hvxv73" in old, "+hvx-qfloat" in old) == (True, False, False)
    assert ("+hvxv73" in new, "+hvxv75" in new, "+hvx-qfloat" in new) == (True, False, True)
    with pytest.raises(ValueError, match="Unknown Hexagon version -mv99: must be one of v60, "):
        version_in(["-mv99"])

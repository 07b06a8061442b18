"""The table of points holds: every line is there, every number is used once."""

from __future__ import annotations

import re

import pytest

from tests.faults.points import POINTS, SOURCES, everywhere, line_of


def test_every_point_has_its_line() -> None:
    assert [point.key for point in POINTS if not line_of(point)] == []


def test_no_two_points_are_one() -> None:
    assert len({point.key for point in POINTS}) == len(POINTS)
    places = [(point.target, line_of(point)) for point in POINTS if point.actor != "daemon"]
    assert len(set(places)) == len(places)


def test_every_macro_in_c_has_a_point() -> None:
    macros = {
        name for path in SOURCES.glob("*.c") for name in re.findall(r'HBRT_KILL_POINT\("(.*?)"\)', path.read_text())
    }
    assert macros == {point.key for point in POINTS if point.is_in_c}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("core-C09", r"core-C09: dsp_server\.core\.loop:Core\.run has no line 1 with 'no such line'"),
        ("core-C01", r"core-C99: core\.c has 0 lines with HBRT_KILL_POINT\(\"core-C99\"\);"),
    ],
)
def test_a_line_that_has_gone_is_named(key: str, text: str) -> None:
    point = next(point for point in POINTS if point.key == key)
    gone = point._replace(number="C99") if point.is_in_c else point._replace(anchor="no such line")
    with pytest.raises(LookupError, match=text):
        line_of(gone)


def test_everywhere_has_the_numbered_lines_too() -> None:
    lines = {(point.target, line_of(point)) for point in everywhere("core")}
    assert {(point.target, line_of(point)) for point in POINTS if point.actor == "core" and not point.is_in_c} <= lines

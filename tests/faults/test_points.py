"""The table of points holds: every line is there, every number is used once."""

from __future__ import annotations

import pytest

from tests.faults.points import POINTS, everywhere, line_of


def test_every_point_has_its_line() -> None:
    assert [point.key for point in POINTS if not line_of(point)] == []


def test_no_two_points_are_one() -> None:
    assert len({point.key for point in POINTS}) == len(POINTS)
    places = [(point.target, line_of(point)) for point in POINTS if point.actor != "daemon"]
    assert len(set(places)) == len(places)


def test_a_line_that_has_gone_is_named() -> None:
    gone = POINTS[0]._replace(anchor="no such line")
    with pytest.raises(
        LookupError, match=r"core-C01: dsp_server\.core\.loop:Core\._collect has no line 1 with 'no such line'"
    ):
        line_of(gone)


def test_everywhere_has_the_numbered_lines_too() -> None:
    lines = {(point.target, line_of(point)) for point in everywhere("core")}
    assert {(point.target, line_of(point)) for point in POINTS if point.actor == "core"} <= lines

"""The record of a finding: which are the same, and how they are shown."""

from __future__ import annotations

import pytest

from hbrt.findings.record import Finding, Place, Severity, finding_of
from hbrt.findings.text import MAX_PLACES, allocated_at, line_of, log_line_of, submitted_at
from tests.each import each

LEAK = Finding("leak", "2 blocks were not freed.", (Place("allocated", "arm.py:3", client=4, phy_addr=0x8000_1000),), 4)


def test_a_finding_is_the_same_after_its_way_as_plain_data() -> None:
    assert finding_of(LEAK.as_dict()) == LEAK
    assert LEAK.as_dict()["places"] == [{"what": "allocated", "site": "arm.py:3", "client": 4, "phy_addr": 0x8000_1000}]


@each(
    "wrong",
    [{}, {"kind": "leak"}, {"kind": "nothing", "text": ""}, {"kind": "leak", "text": "", "places": [{"no": 1}]}],
)
def test_what_is_no_finding_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="is not a finding"):
        finding_of(wrong)


def test_one_line_is_one_mistake_whatever_the_values() -> None:
    later = LEAK._replace(text="3 blocks.", places=(LEAK.places[0]._replace(phy_addr=1, client=9),), time=5.0)
    assert later.fingerprint == LEAK.fingerprint
    assert LEAK.again(later) == later._replace(times=2)
    elsewhere = (LEAK.places[0]._replace(site="arm.py:4"),)
    assert LEAK._replace(places=elsewhere).fingerprint != LEAK.fingerprint
    assert LEAK._replace(kind="overrun").fingerprint != LEAK.fingerprint


def test_without_a_line_the_sentence_tells_findings_apart() -> None:
    bare = LEAK._replace(places=())
    assert bare.fingerprint == bare._replace(times=7, time=1.0).fingerprint
    assert bare.fingerprint != bare._replace(text="Another.").fingerprint


def test_text_has_the_kind_the_sentence_and_how_often() -> None:
    assert line_of(LEAK) == "leak: 2 blocks were not freed."
    assert log_line_of(LEAK._replace(times=3)) == (
        "WARNING leak: 2 blocks were not freed. (found 3 times; this is the last)"
    )
    assert Finding("overrun", "").severity is Severity.ERROR


def test_blocks_are_named_by_the_lines_that_allocated_them() -> None:
    blocks = tuple(Place("allocated", f"a.py:{line}", phy_addr=line << 12, size_bytes=16) for line in range(1, 11))
    assert allocated_at(blocks[:2]) == " Allocated at a.py:1 (0x1000+0x10), a.py:2 (0x2000+0x10)."
    assert allocated_at(blocks).endswith(f"a.py:{MAX_PLACES} (0x8000+0x10) and 2 more lines.")
    assert allocated_at((Place("allocated", phy_addr=1, size_bytes=1),)) == ""
    loop = tuple(Place("allocated", "a.py:3", phy_addr=at << 12, size_bytes=16) for at in range(1, 65))
    assert allocated_at(loop) == " Allocated at a.py:3 (64 blocks, 1024 bytes, the first 0x1000+0x10)."


def test_tasks_are_named_by_the_lines_that_submitted_them() -> None:
    tasks = tuple(Place("submitted", f"a.py:{line}", cmd=0x1000) for line in (3, 3, 5))
    assert submitted_at(tasks) == " Submitted at a.py:3 (2 of command 0x1000), a.py:5 (1 of command 0x1000)."
    assert submitted_at((Place("submitted", cmd=0x1000),)) == ""

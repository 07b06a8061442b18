"""Which of many like sentences a log gets, and the findings that a board keeps."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import pytest

from dsp_server.process.journal import MAX_FINDINGS, MAX_PEERS, REPEAT_SECONDS, Journal, Repeats
from hbrt.findings.record import Place


def test_the_first_of_a_peer_is_logged_and_the_others_are_counted() -> None:
    repeats = Repeats()
    assert repeats.suffix(b"a", 1000.0) == ""
    assert repeats.suffix(b"b", 1000.0) == ""
    assert [repeats.suffix(b"a", 1000.0 + tenth / 10) for tenth in range(100)] == [None] * 100
    assert repeats.suffix(b"b", 1001.0) is None
    assert repeats.suffix(b"a", 1000.0 + REPEAT_SECONDS) == " (101 more, from all peers, were not logged.)"
    assert repeats.suffix(b"a", 1000.0 + 2 * REPEAT_SECONDS) == ""


def test_who_connects_anew_each_time_fills_no_log() -> None:
    repeats = Repeats()
    said = [repeats.suffix(number.to_bytes(4, "big"), 5000.0) for number in range(1, 10_000)]
    assert len([one for one in said if one is not None]) == MAX_PEERS + 1


@pytest.fixture
def kept() -> Iterator[tuple[Journal, Callable[[], list[str]]]]:
    read, write = os.pipe()

    def lines() -> list[str]:
        os.write(write, b"\n")
        return os.read(read, 65536).decode().split("\n")[:-2]

    yield Journal(write), lines
    os.close(read)
    os.close(write)


def test_one_mistake_is_kept_once_and_counted(kept: tuple[Journal, Callable[[], list[str]]]) -> None:
    journal, lines = kept
    for number in range(1, 9):
        journal.find("overrun", f"Block {number}.", Place("allocated", "a.py:1"), client=1)
    journal.find("overrun", "Another program's.", Place("allocated", "a.py:1"), client=2)
    assert [(found.text, found.times) for found in journal.findings] == [("Block 8.", 8), ("Another program's.", 1)]
    said = [line.partition(" daemon ")[2] for line in lines()]
    assert [line.partition(".")[0] for line in said] == [
        "ERROR overrun: Block 1",
        "ERROR overrun: Block 2",
        "ERROR overrun: Block 4",
        "ERROR overrun: Block 8",
        "ERROR overrun: Another program's",
    ]
    assert said[-2].endswith("(found 8 times; this is the last)")
    journal.clear()
    assert journal.findings == []
    journal.find("overrun", "Block 9.", Place("allocated", "a.py:1"), client=1)
    assert [found.times for found in journal.findings] == [1]
    assert len(lines()) == 1


def test_the_oldest_finding_goes_when_there_are_too_many(kept: tuple[Journal, Callable[[], list[str]]]) -> None:
    journal, _ = kept
    for number in range(MAX_FINDINGS + 1):
        journal.find("leak", f"Sentence {number}.")
        journal.find("leak", "Sentence 0.", times=0)  # it comes again and again, so it is the latest
    assert len(journal.findings) == MAX_FINDINGS
    assert {found.text for found in journal.findings} >= {"Sentence 0.", f"Sentence {MAX_FINDINGS}."}
    assert "Sentence 1." not in {found.text for found in journal.findings}


def test_findings_of_a_program_stay_its_own_when_the_wall_clock_is_set_back(
    kept: tuple[Journal, Callable[[], list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, _ = kept
    attached_at, now = time.monotonic(), time.time()
    monkeypatch.setattr(time, "time", lambda: now - 86_400)
    journal.find("leak", "Nobody freed it.", client=3)
    assert [one.text for one in journal.of_program(3, attached_at)] == ["Nobody freed it."]
    assert journal.of_program(3, time.monotonic() + 1) == []

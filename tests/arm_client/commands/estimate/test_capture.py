"""Calls of a capture: which of their times can be used, and what a fitted profile says beyond them."""

from pathlib import Path
from typing import Any

import pytest

from arm_client.commands.estimate.calls import Known
from arm_client.commands.estimate.capture import measurements_of, usable
from arm_client.commands.estimate.fit import BadMeasurementsError
from arm_client.commands.estimate.report import document_of
from arm_client.commands.estimate.what_if import WHAT_IF
from hbrt.profiles.estimate import FIT, Call as Charged
from hbrt.profiles.profile import BadProfileError, Measured, find, from_answer, load, to_answer
from hbrt.profiles.work import Work
from hbrt.recording.format import Call, Recorded, begin

J5 = find("j5")


def _call(submitted_ns: int, ended_ns: int, *, waited_ns: int = 0, status: int = 0) -> Recorded:
    call = Call(0x400, submitted_ns=submitted_ns, ended_ns=ended_ns, waited_ns=waited_ns, status=status)
    return Recorded(str(submitted_ns), Path(), call)


def test_calls_whose_times_are_not_those_of_the_op_are_left_out() -> None:
    good = [_call(100, 200), _call(300, 400, waited_ns=320)]
    late = _call(500, 600, waited_ns=599)
    beside = [_call(700, 900), _call(800, 1000)]
    failed, unended = _call(1100, 1200, status=-1), _call(1300, 0)
    found, left_out = usable([unended, *beside, late, *good, failed])
    assert found == good
    assert list(left_out.values()) == [2, 2, 1]


def test_a_recording_of_this_machine_has_no_times_of_a_board(tmp_path: Path) -> None:
    begin(tmp_path, "hbrt")
    with pytest.raises(BadMeasurementsError, match="was recorded by 'hbrt', not on a board"):
        measurements_of(tmp_path, None, J5)
    begin(tmp_path / "board", "board")
    with pytest.raises(BadMeasurementsError, match="has no call with a usable time"):
        measurements_of(tmp_path / "board", None, J5)


def test_what_lies_beyond_the_measurements_is_said_to_be_extrapolated(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text('base = "j5"\n[measured]\n"softmax" = [1000, 4000, 0.09]\n')
    ours = load(file)
    assert (ours.measured, ours.chip) == ({"softmax": Measured(1000, 4000, 0.09)}, "j5")
    near = Charged(0x400, "softmax", 100, Work(bundles=10), 8000, 2, 0, 9)
    far, other = near._replace(block_bytes=8001), near._replace(cmd=0x401, name="remap")

    def estimate(*calls: Charged) -> dict[str, Any]:
        return document_of("", Known(list(calls), 0, 0), ours, ours, is_relayed=False)

    def said(*calls: Charged) -> list[str]:
        sentences: list[str] = estimate(*calls)["extrapolated"]
        return sentences

    assert said(near) == []
    assert said(far) == ["Extrapolated: softmax has calls of 8001 to 8001 bytes; it was measured with 1000 to 4000."]
    assert "no measurement of remap is in profile ours" in said(near, other)[0]
    assert "off by up to 9%" in said(near, other)[0]
    one, total = estimate(near)["calls"][0], estimate(near)["total"]
    for found in (one, total):  # twice the error, in the place of what is assumed
        assert found["high_us"] == pytest.approx(1.18 * found["modeled_us"])
        assert found["low_us"] == pytest.approx(found["modeled_us"] / 1.18)
    assert [each["key"] for each in total["spread"]] == [FIT]
    _, unknown = estimate(near, other)["calls"]
    assert unknown["high_us"] > 1.5 * unknown["modeled_us"]
    both = estimate(near, other)["total"]  # next to each other, on two cores
    assert 2 * both["high_us"] == pytest.approx(one["high_us"] + unknown["high_us"])
    assert from_answer(to_answer(ours)) == ours._replace(constants=dict(ours.constants))
    file.write_text('base = "j5"\n[measured]\nsoftmax = 3\n')
    with pytest.raises(BadProfileError, match=r"must have OP = "):
        load(file)


def test_a_fit_to_one_op_and_changed_constants_have_the_range_of_what_is_assumed(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text('base = "j5"\n[measured]\n"softmax" = [1000, 4000]\n')
    alone = load(file)
    assert from_answer(to_answer(alone)).measured == {"softmax": Measured(1000, 4000, None)}
    call = Charged(0x400, "softmax", 100, Work(bundles=10), 8000, 2, 0, 9)
    assumed = document_of("", Known([call], 0, 0), J5, J5, is_relayed=False)["total"]
    total = document_of("", Known([call], 0, 0), alone, alone, is_relayed=False)["total"]
    assert [total[end] for end in ("low_us", "high_us")] == pytest.approx([assumed["low_us"], assumed["high_us"]])
    file.write_text('base = "j5"\n[measured]\n"softmax" = [1000, 4000, 0.01]\n')
    changed = load(file).fixed({"cores.dsp.clock_mhz": 200}, WHAT_IF)
    total = document_of("", Known([call], 0, 0), changed, changed, is_relayed=False)["total"]
    assert total["high_us"] > 1.5 * total["modeled_us"]

"""Faults as text, and when they are due."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from hbrt.injection.fault import WORDS, BadFaultError, Fault, Trigger, parse
from tests.each import each

FAULTS = st.builds(
    Fault,
    st.sampled_from(sorted(WORDS)),
    core=st.integers(0, 63),
    call=st.integers(1, 1000),
    times=st.integers(1, 1000),
    cmd=st.integers(-1, 0xFFFF),
    ms=st.integers(0, 10_000),
    chance=st.sampled_from([0, 0.25, 1]),
    seed=st.integers(0, 1000),
)


@given(FAULTS)
def test_text_of_a_fault_is_that_fault(fault: Fault) -> None:
    fault = Fault(fault.action, **{name: getattr(fault, name) for name in WORDS[fault.action]})
    assert parse(str(fault)) == fault


def test_it_comes_at_its_call_and_as_often_as_asked_for() -> None:
    trigger = Trigger(parse("delay call=3 times=2"))
    assert [trigger.is_due() for _ in range(6)] == [False, False, True, True, False, False]
    assert trigger.is_spent


def test_calls_of_other_commands_do_not_count() -> None:
    trigger = Trigger(parse("delay call=2 cmd=0x400"))
    assert [trigger.is_due(cmd) for cmd in (0x400, 0x401, 0x401, 0x400)] == [False, False, False, True]


def test_drawing_is_repeatable_and_near_its_chance() -> None:
    first, second = (Trigger(parse("delay chance=0.25 seed=7 times=1000")) for _ in range(2))
    drawn = [first.is_due() for _ in range(2000)]
    assert drawn == [second.is_due() for _ in range(2000)]
    assert 400 < sum(drawn) < 600


@each(
    "text, words",
    [
        ("", "Unknown fault ''; known: kill-core,"),
        ("kill", "Unknown fault 'kill'"),
        ("delay soon", "Unknown fault word 'soon'; known: core, call,"),
        ("delay call=x", "'call=x' has no number"),
        ("delay call=0", "call=0 is out of range: use 1 to"),
        ("delay chance=2", "chance=2.0 is out of range: use 0 to 1"),
        ("delay ms=nan", "ms=nan is out of range"),
        ("refuse-alloc cmd=0x400", "'refuse-alloc' does not take 'cmd': it takes call, times, chance, seed."),
        ("kill-core ms=5", "'kill-core' does not take 'ms': it takes core, cmd, call, times, chance, seed."),
        ("lose-relay core=1", "'lose-relay' does not take 'core': it occurs at once and takes no words."),
    ],
)
def test_text_that_is_no_fault_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadFaultError) as caught:
        parse(text)
    assert words in str(caught.value)


def test_a_number_of_thousands_of_digits_is_refused_with_a_sentence() -> None:
    for digits in ("9" * 5000, "0x" + "f" * 5000):
        with pytest.raises(BadFaultError, match="Invalid call: its number has"):
            parse(f"kill-core call={digits}")

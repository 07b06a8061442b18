"""``hbrt estimate offload``: break-even by what the CPU and a call take."""

from __future__ import annotations

from pathlib import Path

import pytest

from arm_client.commands.estimate.offload import Choice, choice_of, first_win
from arm_client.commands.op.sweep import Sample
from hbrt.profiles.estimate import Call
from hbrt.profiles.profile import find
from hbrt.profiles.work import Work
from tests.each import each
from tests.shared import Shell

EXACT = find("j5").with_values(
    {"rpc.call_us": 1800, "rpc.buffer_us": 0, "cpu.host_ratio": 1, "cores.dsp.clock_mhz": 1000}
)
EXACT = EXACT._replace(
    constants={key: one._replace(low=one.value, high=one.value) for key, one in EXACT.constants.items()}
)


def choice(cpu_ms: float, dsp_ms: float, calls: int = 10) -> Choice:
    def op(ms: float) -> Sample:
        return Sample(1000, [1], Call(1, "op", round(1e6 * ms), Work(bundles=1), 0, 0))

    return choice_of(op(dsp_ms), op(dsp_ms / calls), 1000 * cpu_ms, EXACT, calls, 8, is_relayed=False)


@each(
    "cpu_ms, dsp_ms, wins, gain_ms",
    [(1.7, 0.001, "CPU", -0.101), (10, 1.2, "DSP", 7.0), (1.8, 0.001, "CPU", -0.001)],
)
def test_a_call_is_worth_it_when_the_cpu_takes_longer_than_the_op_and_the_call(
    cpu_ms: float, dsp_ms: float, wins: str, gain_ms: float
) -> None:
    one = choice(cpu_ms, dsp_ms)
    assert one.verdict == wins
    assert one.gain.value == pytest.approx(1000 * gain_ms)


def test_ten_calls_cost_ten_times_the_call() -> None:
    one = choice(10, 1.2)
    assert one.many_calls == pytest.approx(19_200)
    assert one.many_calls > one.cpu.value  # so that the same work in ten calls stays


def test_the_break_even_lies_between_two_sizes_and_holds_from_there_on() -> None:
    def at(elements: int, cpu_ms: float) -> Choice:
        return choice(cpu_ms, 0.2)._replace(elements=elements)

    sizes = [at(100, 1), at(200, 3), at(400, 5)]
    assert first_win(sizes, lambda one: one.gain.value) == pytest.approx(150)
    assert first_win(sizes[1:], lambda one: one.gain.value) == 200
    assert first_win(sizes[:1], lambda one: one.gain.value) is None
    assert first_win([*sizes, at(800, 1)], lambda one: one.gain.value) is None


def test_the_adviser_measures_the_function_and_models_the_op(shell: Shell, tmp_path: Path) -> None:
    reference = tmp_path / "reference.py"
    reference.write_text(
        "import time\ndef softmax(x):\n    if len(x) > 5000:\n        time.sleep(0.02)\n    return x\n"
    )
    told = shell.json(
        "estimate", "offload", "0x400", "--cpu", f"{reference}:softmax", "--sizes", "1K,100K", "--calls", "4"
    )
    small, large = told["sizes"]
    assert small["wins"].startswith("CPU")
    assert large["wins"].startswith("DSP")
    assert large["modeled_cpu"]["modeled_us"] == pytest.approx(4 * large["host_cpu_us"])
    assert large["modeled_many_calls_us"] > 3 * large["modeled_one_call"]["modeled_us"]
    assert 1024 < told["dsp_wins_from"]["modeled"] < 100 * 1024
    said = shell.good("estimate", "offload", "0x400", "--cpu", f"{reference}:softmax", "--sizes", "1K,2K")
    assert "Up to 2048 elements the CPU wins" in said
    code, said = shell.refused("estimate", "offload", "0x400", "--cpu", "nowhere:f", "--sizes", "1K")
    assert code == 2
    code, said = shell.refused("estimate", "offload", "0x400", "--cpu", f"{reference}:softmax", "--sizes", "many")
    assert (code, "Invalid sizes 'many': expected elements, as in 1K,64K,1M or 1K-1M." in said) == (2, True)

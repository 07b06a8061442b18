"""The offload adviser's answer, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from arm_client.commands.estimate.offload import Choice, first_win
from arm_client.commands.estimate.report import range_as_dict, show_shares, us
from hbrt.cli.tables import Column, numbers, show_json, show_table, show_text
from hbrt.profiles.profile import Profile


def show(choices: Sequence[Choice], profile: Profile, calls: int, buffers: int, *, as_json: bool) -> None:
    """Show who wins at which size, and from which size on the DSP does."""
    likely = first_win(choices, lambda one: one.gain.value)
    surely = first_win(choices, lambda one: one.gain.low)
    perhaps = first_win(choices, lambda one: one.gain.high)
    if as_json:
        show_json(
            {
                "profile": profile.name,
                "calls": calls,
                "buffers": buffers,
                "dsp_wins_from": {"best": perhaps, "modelled": likely, "worst": surely},
                "sizes": [
                    {
                        "elements": one.elements,
                        "host_cpu_us": one.host_us,
                        "modelled_cpu": range_as_dict(one.cpu),
                        "modelled_one_call": range_as_dict(one.one_call),
                        "modelled_many_calls_us": one.many_calls,
                        "modelled_many_buffers_us": one.many_buffers,
                        "modelled_gain": range_as_dict(one.gain),
                        "wins": one.verdict,
                    }
                    for one in choices
                ],
            }
        )
        return
    columns = (
        *numbers("ELEMENTS", "CPU HERE", "CPU", "ONE CALL", f"{calls} CALLS", f"{buffers} BUFFERS"),
        Column("WINS"),
    )
    rows = [
        (
            one.elements,
            us(one.host_us),
            us(one.cpu.value),
            us(one.one_call.value),
            us(one.many_calls),
            us(one.many_buffers),
            one.verdict,
        )
        for one in choices
    ]
    show_table(columns, rows)
    show_text("\nCPU HERE is measured on this machine; the other times are modelled for the board.")
    if likely is None:
        show_text(f"Up to {choices[-1].elements} elements the CPU wins: a call costs more than it saves.")
    else:
        best = "never" if perhaps is None else f"{perhaps:.0f}"
        worst = "not up to the largest size" if surely is None else f"{surely:.0f}"
        show_text(
            f"From {likely:.0f} elements on the DSP wins; with the assumed constants at their best from {best}, at "
            f"their worst {worst}."
        )
    show_shares([(one["key"], one["share"]) for one in range_as_dict(choices[-1].gain)["spread"]])

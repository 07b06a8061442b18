"""Measurements of a capture: a recording that ``recorder.c`` made on a board; its calls run here for their work."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from arm_client.commands.estimate.fit import BadMeasurementsError, Measurement
from arm_client.commands.replay.board import board_for
from hbrt.findings.text import counted
from hbrt.profiles.estimate import calls_of
from hbrt.profiles.profile import Profile
from hbrt.recording.format import HEAD, Recorded, read

BOARD: Final = "board"
"""What the recorder of a board calls itself in the head of a recording."""
_TIMEOUT_MS: Final = 60_000.0
_LATE: Final = 0.05
"""A wait that took a smaller share of its call may have begun after the call's end."""


def measurements_of(directory: Path, image: str | None, base: Profile) -> tuple[list[Measurement], list[str]]:
    """Run the calls of a capture on a private board, and pair each call's work with its recorded time.

    Args:
        directory: The recording.
        image: Image file with the ops; None for the packaged ops.
        base: The profile to run with.

    Returns:
        The measurements, and messages about omitted calls.

    Raises:
        BadMeasurementsError: it was not made on a board, or has no call with a usable time.
        BadRecordingError: it is not a recording.
    """
    calls, notes = read(directory)
    head = json.loads((directory / HEAD).read_text(encoding="utf-8"))
    if head.get("recorder") != BOARD:
        raise BadMeasurementsError(
            f"{directory} was recorded by {head.get('recorder')!r}, not on a board: its times are this machine's. "
            "See docs/recording.md for capturing a program on a board with recorder.c."
        )
    good, left_out = usable(calls)
    notes += [f"{counted(count, 'call')} left out: {why}." for why, count in left_out.items() if count]
    if not good:
        raise BadMeasurementsError(f"{directory} has no call with a usable time. {' '.join(notes)}".rstrip())
    os.environ["HBRT_PROFILE"] = base.origin  # of the board
    found, differing = [], 0
    with board_for(calls, image) as board:
        for one in good:
            status, _ = board.run(one, _TIMEOUT_MS)
            ended = calls_of(board.ended())
            if status or not ended:
                differing += 1
                continue
            us = (one.call.ended_ns - one.call.submitted_ns) / 1000
            found.append(Measurement(ended[-1]._replace(submitted_ns=0, ended_ns=0), us, is_whole=True))
    if differing:
        notes.append(f"{counted(differing, 'call')} left out: it failed here. Name the program's ops by --image.")
    if not found:
        raise BadMeasurementsError(f"No call of {directory} ran here. {' '.join(notes)}")
    return found, notes


def usable(calls: Sequence[Recorded]) -> tuple[list[Recorded], dict[str, int]]:
    """The calls whose times cover only the op, and the number of omitted calls by reason."""
    left_out = dict.fromkeys(
        ("failed, or did not end", "ran alongside another call", "the program may have waited after its end"), 0
    )
    failed, beside, late = left_out
    good = []
    known = [one for one in calls if one.call.submitted_ns and one.call.ended_ns > one.call.submitted_ns]
    left_out[failed] = len(calls) - len(known)
    in_order = sorted(known, key=lambda one: one.call.submitted_ns)
    ended_ns = 0
    for at, one in enumerate(in_order):
        call = one.call
        next_ns = in_order[at + 1].call.submitted_ns if at + 1 < len(in_order) else call.ended_ns
        waited_ns = call.ended_ns - call.waited_ns if call.waited_ns else call.ended_ns - call.submitted_ns
        if call.status:
            left_out[failed] += 1
        elif call.submitted_ns < ended_ns or next_ns < call.ended_ns:
            left_out[beside] += 1
        elif waited_ns < _LATE * (call.ended_ns - call.submitted_ns):
            left_out[late] += 1
        else:
            good.append(one)
        ended_ns = max(ended_ns, call.ended_ns)
    return good, left_out

"""``hbrt estimate calibrate``: assumed constants fitted to times that were measured on a board. Pure."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from math import exp, log, sqrt
from pathlib import Path
from typing import Final, NamedTuple

from hbrt.profiles.estimate import Call, needs_a_run, parts_of
from hbrt.profiles.profile import Profile
from hbrt.profiles.work import Work
from hbrt.settings import BadSettingError

OP, WHOLE = "board_op_us", "board_call_us"
"""Columns of a measurement: the time of the op on its core, or of the whole call as the program sees it."""
_STEP: Final = 0.05
"""Of a constant's range, for derivatives: cycles are whole, so that a small step moves nothing."""
PRIOR: Final = 0.02
"""How strongly a constant that hardly affects the times keeps its value, relative to the error of one measurement."""


class BadMeasurementsError(BadSettingError):
    """The file has no usable measurements; names the line, the column and the requirement."""


class Measurement(NamedTuple):
    """A call and its time on the board."""

    call: Call
    board_us: float
    is_whole: bool


class Fitted(NamedTuple):
    """The constants changed by a fit, and the errors of the model: root mean square of its logarithmic errors."""

    values: dict[str, float]
    before: float
    after: float


def read(file: Path) -> list[Measurement]:
    """Measurements: lines of ``hbrt tasks --csv`` with a column for the time on the board.

    Raises:
        BadMeasurementsError: a line has no measurement, or columns are missing.
    """
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadMeasurementsError(f"{file} cannot be read: {error}.") from error
    if not rows:
        raise BadMeasurementsError(f"{file} has no measurements; write the lines of hbrt tasks --csv with {OP}.")
    return [_measurement(row, f"{file}, line {number}") for number, row in enumerate(rows, 2)]


def _measurement(row: dict[str, str], where: str) -> Measurement:
    column = next((name for name in (OP, WHOLE) if row.get(name)), None)
    if column is None:
        raise BadMeasurementsError(f"{where} has neither {OP} nor {WHOLE}: write the time of the op or the call in µs.")
    try:
        board_us = float(row[column])
        work = Work(*(int(row[f"work_{name}"]) for name in Work._fields))
        block_bytes = [int(row["input_bytes"]), int(row["output_bytes"])]
        is_estimated = row["modeled_is_estimated"] == "True"
        charged = 0 if is_estimated else int(row["modeled_cycles"])
        cmd = int(row["cmd"])
    except KeyError as error:
        raise BadMeasurementsError(f"{where}: no column {error}; start from the output of hbrt tasks --csv.") from None
    except (TypeError, ValueError) as error:
        raise BadMeasurementsError(f"{where}: {error}.") from None
    if not 0 < board_us < float("inf"):
        raise BadMeasurementsError(f"{where}: {column} is {row[column]}; write a time above 0 in µs.")
    buffers = sum(map(bool, block_bytes)) + bool(work.mapped_bytes)
    call = Call(cmd, row.get("name", ""), charged, work, sum(block_bytes), buffers)
    return Measurement(call, board_us, column == WHOLE)


def fit(measurements: Sequence[Measurement], base: Profile) -> Fitted:
    """The assumed constants, each within its range, with which the model is nearest to the measurements.

    Args:
        measurements: Calls that ran here with ``base``.
        base: The profile to begin with.

    Raises:
        ImportError: scipy is not installed.
    """
    import numpy as np
    from scipy.optimize import least_squares

    keys = [key for key in base.assumed if not needs_a_run(key) and _moves(key, measurements, base)]
    spans = [(base.constants[key].low or 1e-3, base.constants[key].value, base.constants[key].high) for key in keys]

    def values(scaled: Iterable[float]) -> dict[str, float]:
        found = {}
        for key, (low, _, high), one in zip(keys, spans, scaled, strict=True):
            number = low * (high / low) ** float(one)
            found[key] = _allowed(key, min(max(number, base.constants[key].low), high))
        return found

    def smooth(scaled: Iterable[float]) -> Profile:
        changed = dict(base.constants)
        for key, (low, _, high), one in zip(keys, spans, scaled, strict=True):
            changed[key] = changed[key]._replace(value=low * (high / low) ** float(one))
        return base._replace(constants=changed)

    start = np.array([log(value / low) / log(high / low) if high > low else 0.0 for low, value, high in spans])

    def residuals(scaled: Iterable[float]) -> list[float]:
        there = list(scaled)
        return [
            *errors(measurements, base, smooth(there)),
            *(PRIOR * (a - b) for a, b in zip(there, start, strict=True)),
        ]

    before = _root_mean_square(errors(measurements, base, base))
    if not keys:
        return Fitted({}, before, before)
    inside = np.clip(start, 1e-6, 1 - 1e-6)
    found = values(least_squares(residuals, inside, bounds=(0.0, 1.0), diff_step=_STEP).x.tolist())
    return Fitted(found, before, _root_mean_square(errors(measurements, base, base.with_values(found))))


def held_out_errors(measurements: Sequence[Measurement], base: Profile) -> dict[str, float]:
    """Fit to all ops but one, for each in turn: how far the model is then off for that one.

    Args:
        measurements: Measurements of one or more ops.
        base: The profile to begin with.

    Returns:
        By op, the error as a share, root mean square over its measurements; empty for a single op.

    Raises:
        ImportError: scipy is not installed.
    """
    names = sorted({_op_of(one) for one in measurements})
    found = {}
    for name in names if len(names) > 1 else ():
        rest, held_out = (
            [one for one in measurements if (_op_of(one) == name) == is_held_out] for is_held_out in (False, True)
        )
        profile = base.with_values(fit(rest, base).values)
        found[name] = exp(_root_mean_square(errors(held_out, base, profile))) - 1
    return found


def sizes_of(measurements: Sequence[Measurement]) -> dict[str, tuple[int, int]]:
    """The least and the most bytes of the calls of each op."""
    found: dict[str, tuple[int, int]] = {}
    for one in measurements:
        size_bytes = one.call.size_bytes
        least, most = found.get(_op_of(one), (size_bytes, size_bytes))
        found[_op_of(one)] = min(least, size_bytes), max(most, size_bytes)
    return found


def _op_of(one: Measurement) -> str:
    return one.call.name or f"{one.call.cmd:#x}"


def errors(measurements: Sequence[Measurement], base: Profile, profile: Profile) -> list[float]:
    """Of each measurement the logarithm of modeled against measured."""
    return [log(max(_modeled_us(one, base, profile), 1e-9) / one.board_us) for one in measurements]


def _modeled_us(one: Measurement, base: Profile, profile: Profile) -> float:
    parts = parts_of(one.call, base, profile, is_relayed=False)
    return parts.total if one.is_whole else parts.op


def _moves(key: str, measurements: Sequence[Measurement], base: Profile) -> bool:
    one = base.constants[key]
    low, high = (base.with_values({key: bound}) for bound in (one.low, one.high))
    return any(_modeled_us(each, base, low) != _modeled_us(each, base, high) for each in measurements)


def _allowed(key: str, number: float) -> float:
    from hbrt.profiles.keys import KEYS

    return float(round(number)) if KEYS[key].is_whole else round(number, 4)


def _root_mean_square(numbers: Sequence[float]) -> float:
    return sqrt(sum(one * one for one in numbers) / len(numbers))

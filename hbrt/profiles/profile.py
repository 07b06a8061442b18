"""Reads a profile. ``active()`` is this process's: from HBRT_PROFILE, else the packaged j5."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from hbrt import settings
from hbrt.findings.text import counted
from hbrt.profiles.keys import CODES, KEYS, KINDS, Key, rule_of
from hbrt.settings import BadSettingError, rounded

PACKAGED: Final = Path(__file__).parent
SUFFIX: Final = ".toml"
_FIELDS: Final = frozenset({"value", "source", "assumed", "why"})
_HEAD: Final = frozenset({"name", "title", "base", "chip"})
MEASURED: Final = "measured"
_MAX_BASES: Final = 8


class BadProfileError(BadSettingError):
    """A profile cannot be read, or has an invalid entry; names the key, the value, and what is allowed."""


class Constant(NamedTuple):
    """A constant of a profile; ``low`` and ``high`` equal its value if a source gives it."""

    value: float
    low: float
    high: float
    source: str
    why: str = ""

    @property
    def is_assumed(self) -> bool:
        """Whether it has no source."""
        return not self.source


@dataclass(frozen=True)
class Cores:
    """The cores of one kind: ``dsp``, ``bpu`` or ``npu``; their clock in MHz, 0 if not in the profile."""

    kind: str
    count: int
    clock_mhz: float

    def __str__(self) -> str:
        clock = f" of {self.clock_mhz:g} MHz" if self.clock_mhz else ""
        return f"{counted(self.count, f'{self.kind.upper()} core')}{clock}"


class Measured(NamedTuple):
    """Fit data of one op: the bytes of its calls, and the error of a fit to the other ops for it.

    None, and omitted in a file, if no other op was measured: the error of such a fit is unknown.
    """

    least_bytes: int
    most_bytes: int
    error: float | None


class Profile(NamedTuple):
    """The constants of a board by their keys.

    ``measured`` has the fit data of ops by name, if fitted to a board's times. ``chip`` is the underlying packaged
    profile, whose models it runs; "" for none.
    """

    name: str
    title: str
    origin: str
    constants: Mapping[str, Constant]
    measured: Mapping[str, Measured] = MappingProxyType({})
    chip: str = ""

    def number(self, key: str) -> float:
        """Return the value of a constant.

        Raises:
            BadProfileError: it belongs to cores that this board lacks.
        """
        if (one := self.constants.get(key)) is None:
            kind = KEYS[key].of
            raise BadProfileError(
                f"The profile {self.name} ({self.origin}) has no {key}: it has no {kind.upper()} core. Choose "
                f"one that has, such as {'rk3588' if kind == 'npu' else 'j5'}, with HBRT_PROFILE or --profile."
            )
        return one.value

    def whole(self, key: str) -> int:
        """Return the value of a whole-number constant; raises like ``number``."""
        return int(self.number(key))

    def dsp_whole(self, key: str) -> int:
        """Like ``whole``, for a DSP core's constant; 0 on a board without one, whose other cores load the same code."""
        return self.whole(key) if key in self.constants else 0

    @property
    def cores(self) -> dict[str, Cores]:
        """Return the board's cores of each kind."""
        found = {}
        for kind in KINDS:
            if count := self.whole(f"cores.{kind}.count"):
                clock = self.constants.get(f"cores.{kind}.clock_mhz")
                found[kind] = Cores(kind, count, clock.value if clock else 0.0)
        return found

    @property
    def accelerator(self) -> str:
        """Return the kind of the cores that run models."""
        return next((kind for kind in self.cores if kind != "dsp"), "accelerator")

    @property
    def codes(self) -> dict[str, int]:
        """Return the status names and numbers that programs on the board see in addition to hbrt.status."""
        return {key.removeprefix(CODES): int(one.value) for key, one in self.constants.items() if key.startswith(CODES)}

    def dsp_cores(self, wanted: int | None = None) -> int:
        """Return how many DSP cores a board starts with.

        Args:
            wanted: The requested number; None for HBRT_CORES, else the profile's.

        Raises:
            BadProfileError: cores are requested but the profile has none, or vice versa.
            BadSettingError: HBRT_CORES is not a valid number of cores.
        """
        count = self.whole("cores.dsp.count")
        if wanted is None:
            wanted = settings.integer("HBRT_CORES", most=8) or count
        if bool(wanted) != bool(count):
            raise BadProfileError(
                f"{counted(wanted, 'DSP core')} do not fit a board with the profile {self.name}, which has {count}: "
                "omit the number, or choose another profile."
            )
        return wanted

    def process_domains(self, dsp_cores: int) -> tuple[tuple[int, ...], ...]:
        """Return the cores of each process domain on a board with this many DSP cores; the last may have fewer."""
        if not dsp_cores:
            return ()
        each = self.whole("cores.dsp.domain_cores")
        return tuple(tuple(range(at, min(at + each, dsp_cores))) for at in range(0, dsp_cores, each))

    def cores_text(self, dsp_cores: int) -> str:
        """Describe the cores of a board with this many DSP cores: ``2 cores``, or ``3 NPU cores`` if it has none."""
        others = (counted(one.count, f"{one.kind.upper()} core") for one in self.cores.values())
        return counted(dsp_cores, "core") if dsp_cores else ", ".join(others) or "no core"

    def board_priority(self, given: int) -> int:
        """Return a task's mailbox priority, where larger goes first: its distance from the lowest.

        Raises:
            ValueError: the profile does not have this priority.
        """
        highest, lowest = self.whole("priority.highest"), self.whole("priority.lowest")
        if not min(highest, lowest) <= given <= max(highest, lowest):
            raise ValueError(f"The priority is {given}, but must be {lowest} (lowest) to {highest} (highest).")
        return abs(given - lowest)

    @property
    def clock_hz(self) -> int:
        """Clock of a DSP core; raises like ``number``, as do the times below."""
        return round(self.number("cores.dsp.clock_mhz") * 1_000_000)

    @property
    def vector_bytes(self) -> int:
        """Bytes of a DSP core's vector."""
        return self.whole("vector.bits") // 8

    def us(self, cycles: float) -> float:
        """Convert cycles of a DSP core to microseconds."""
        return cycles / self.number("cores.dsp.clock_mhz")

    def ns(self, cycles: int) -> float:
        """Convert cycles of a DSP core to nanoseconds."""
        return cycles * 1_000_000_000 / self.clock_hz

    def with_values(self, values: Mapping[str, float]) -> Profile:
        """Return a copy with other values for some constants; a value outside its assumed range widens the range.

        Raises:
            BadProfileError: no such constant, or an invalid value.
        """
        changed = dict(self.constants)
        for key, value in values.items():
            number, old = self._checked(key, value), changed[key]
            changed[key] = Constant(number, min(old.low, number), max(old.high, number), old.source, old.why)
        return self._replace(constants=changed)

    def fixed(self, values: Mapping[str, float], source: str) -> Profile:
        """Return a copy in which ``source`` gives some constants, which then have no range.

        Raises:
            BadProfileError: no such constant, one for cores that this board lacks, or an invalid value.
        """
        given = {key: self._checked(key, value) for key, value in values.items()}
        return self._replace(
            constants={**self.constants, **{key: Constant(one, one, one, source) for key, one in given.items()}}
        )

    def _checked(self, key: str, value: float) -> float:
        number = _number(key, value, key)
        self.number(key)  # the board has it
        return number

    @property
    def assumed(self) -> dict[str, Constant]:
        """Return the constants without a source."""
        return {key: one for key, one in self.constants.items() if one.is_assumed}


def to_answer(profile: Profile) -> dict[str, Any]:
    """Return the profile as plain data, for a message."""
    return {
        "name": profile.name,
        "title": profile.title,
        "origin": profile.origin,
        "chip": profile.chip,
        "constants": [[key, *one] for key, one in profile.constants.items()],
        MEASURED: {op: list(one) for op, one in profile.measured.items()},
    }


def from_answer(told: Mapping[str, Any]) -> Profile:
    """Create a profile from ``to_answer``'s data; older daemons omit the last fields."""
    constants = {key: Constant(*fields) for key, *fields in told["constants"]}
    measured = {op: Measured(*fields) for op, fields in told.get(MEASURED, {}).items()}
    return Profile(told["name"], told["title"], told["origin"], constants, measured, told.get("chip", ""))


@cache
def active() -> Profile:
    """Return this process's profile.

    Raises:
        BadProfileError: HBRT_PROFILE names an unknown or invalid profile.
    """
    return find(settings.text("HBRT_PROFILE"))


def packaged() -> list[str]:
    """Return the names of hbrt's profiles."""
    return sorted(path.stem for path in PACKAGED.glob(f"*{SUFFIX}"))


def find(named: str) -> Profile:
    """Return the profile with that name, or in that file.

    Raises:
        BadProfileError: it does not exist, or is invalid.
    """
    return load(_path(named, Path.cwd(), "HBRT_PROFILE"))


def load(path: Path, _depth: int = 0) -> Profile:
    """Read the profile in a file; missing constants come from the one named as its ``base``.

    Raises:
        BadProfileError: the file cannot be read, or a constant is missing, unknown or invalid.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadProfileError(f"Cannot read the profile {path}: {error}.") from error
    head = {key: document.pop(key) for key in _HEAD & document.keys()}
    for key, text in head.items():
        if not isinstance(text, str):
            raise BadProfileError(f"{path}: {key} is {text!r}, but must be text.")
    measured = _measured(document.pop(MEASURED, {}), path)
    base: dict[str, Constant] = {}
    chip = path.stem if path.parent == PACKAGED else head.get("chip", "")
    if "base" in head:
        if _depth == _MAX_BASES:
            raise BadProfileError(f"{path}: its chain of base profiles has a cycle.")
        below = load(_path(head["base"], path.parent, f"{path}: base"), _depth + 1)
        base.update(below.constants)
        chip = chip or below.chip
    try:
        base.update((key, _constant(key, given, path)) for key, given in _leaves(document, ""))
    except RecursionError:
        raise BadProfileError(f"Cannot read the profile {path}: its tables are nested too deeply.") from None
    has_kind = {kind: (one := base.get(f"cores.{kind}.count")) is not None and one.value > 0 for kind in KINDS}
    if missing := [key for key, rule in KEYS.items() if key not in base and has_kind.get(rule.of, True)]:
        raise BadProfileError(f'{path}: {missing[0]} is missing; add it, or base = "j5" to take it from there.')
    return Profile(head.get("name", path.stem), head.get("title", ""), str(path), base, measured, chip)


def _measured(table: Any, path: Path) -> dict[str, Measured]:
    """Return the ops that a profile was fitted to.

    Raises:
        BadProfileError: the table does not have the form written by ``hbrt estimate calibrate``.
    """
    try:
        return {
            op: Measured(int(least), int(most), float(error[0]) if error else None)
            for op, (least, most, *error) in table.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise BadProfileError(f"{path}: [{MEASURED}] must have OP = [least bytes, most bytes, error].") from None


def _path(named: str, directory: Path, what: str) -> Path:
    if named in packaged():
        return PACKAGED / f"{named}{SUFFIX}"
    why = "not a file"
    try:
        path = directory / Path(named).expanduser()
        if path.is_file():
            return path.absolute()
    except (OSError, RuntimeError) as error:  # too long, in an inaccessible directory, or ~ of an unknown user
        why = f"not a readable file ({getattr(error, 'strerror', None) or error})"
    names = ", ".join(packaged())
    raise BadProfileError(f"{what} is {named!r}, which is {why}; write a file's name, or one of {names}.")


def _leaves(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the constants of a table, with their full keys."""
    for name, given in table.items():
        key = f"{prefix}{name}"
        if isinstance(given, dict) and key not in KEYS and "value" not in given:
            yield from _leaves(given, f"{key}.")
        else:
            yield key, given


def _constant(key: str, given: Any, path: Path) -> Constant:
    if rule_of(key) is None:
        near = get_close_matches(key, KEYS, 1)
        raise BadProfileError(f"{path}: unknown constant {key}" + (f"; did you mean {near[0]}?" if near else "."))
    if not isinstance(given, dict):
        raise BadProfileError(
            f"{path}: {key} is {given!r}; write {{ value = {given!r}, source = ... }}, or with assumed = [low, high]."
        )
    if unknown := given.keys() - _FIELDS:
        raise BadProfileError(
            f"{path}: {key} has {min(unknown)!r}; a constant has value, and either source or assumed and why."
        )
    if "value" not in given or ("source" in given) == ("assumed" in given):
        raise BadProfileError(f"{path}: {key} needs value, and either source = a text or assumed = [low, high].")
    value = _number(key, given["value"], f"{path}: {key}.value")
    if "source" in given:
        if not (isinstance(given["source"], str) and given["source"].strip()):
            raise BadProfileError(f"{path}: {key}.source is {given['source']!r}; write where the value comes from.")
        return Constant(value, value, value, given["source"])
    if not isinstance(given.get("why", ""), str):
        raise BadProfileError(f"{path}: {key}.why is {given['why']!r}, but must be text.")
    span = given["assumed"]
    if not (isinstance(span, list) and len(span) == 2):
        raise BadProfileError(f"{path}: {key}.assumed is {span!r}; write [low, high].")
    low, high = (_number(key, one, f"{path}: {key}.assumed") for one in span)
    if not low <= value <= high:
        value_is, *ends = (rounded(one, 12) for one in (value, low, high))
        raise BadProfileError(f"{path}: {key}.value is {value_is}, outside assumed, {' to '.join(ends)}; widen it.")
    return Constant(value, low, high, "", given.get("why", ""))


def _number(key: str, given: Any, what: str) -> float:
    rule: Key | None = rule_of(key)
    if rule is None:
        near = get_close_matches(key, KEYS, 1)
        raise BadProfileError(f"Unknown constant {key!r}" + (f"; did you mean {near[0]}?" if near else "."))
    is_number = type(given) in {int, float} and math.isfinite(given)
    if not is_number or not rule.least <= given <= rule.most or (rule.is_whole and given != int(given)):
        kind = "an integer" if rule.is_whole else "a number"
        least, most = rounded(rule.least, 12), rounded(rule.most, 12)
        raise BadProfileError(
            f"{what} is {given!r}; write {kind} from {least} to {most} {rule.unit}. It is {rule.help}."
        )
    return float(given)

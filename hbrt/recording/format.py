"""The files of a recording, and what is in them; docs/recording.md describes them for other writers.

A recording is a directory: ``recording.json``, a folder for each call under ``calls/``, and ``index.jsonl``, to which a
line is appended when a call has ended. A call's folder is complete at each moment: what it names was written before.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from hbrt.borders.printable import printable
from hbrt.borders.regular_files import read_regular
from hbrt.errors import WrongUseError

FORMAT: Final = "hbrt-recording"
VERSION: Final = 1
HEAD, INDEX, CALLS, CALL = "recording.json", "index.jsonl", "calls", "call.json"
MAX_TEXT = 1 << 20  # of a JSON file
MAX_INDEX = 1 << 28
MAX_ADDRESS = (1 << 64) - 1


class BadRecordingError(WrongUseError):
    """A directory is no recording, or a file of it is not as it must be; the message says which, and what is wrong."""


class Range(NamedTuple):
    """A range of physical memory that a call used.

    Attributes:
        phy_addr: Its physical address.
        size_bytes: Its size.
        before: Name of the file with its bytes when the call began to use it.
        after: Name of the file with its bytes at the end; empty when they are the same.
    """

    phy_addr: int
    size_bytes: int
    before: str
    after: str = ""

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.phy_addr + self.size_bytes


class Call(NamedTuple):
    """A call of an op. Times are nanoseconds of one clock of the recording machine, 0 where they are not known.

    Attributes:
        cmd: Command number.
        op: Name of the op; may be empty.
        priority: 0..255, larger first.
        custom_id: The order among equal priorities, smaller first.
        core_mask: The cores that could run it, 0 for any.
        input: Physical address and size of the input block, zeros for none.
        output: Likewise of the output block.
        ranges: The memory that it used; no two overlap.
        site: ``file:line`` of the program that submitted it; may be empty.
        core: The core that ran it.
        status: What it returned; None when it did not end.
        text: The sentence of a failure.
        submitted_ns: When the program submitted it.
        waited_ns: When the program began to wait for it.
        claimed_ns: When the core took it.
        started_ns: When the op began.
        ended_ns: When the op had ended.
        cycles: Modelled cycles; -1 where they are not known.
        ddr_bytes: Bytes that iDMA and loads moved between the core and the DDR; -1 where they are not known.
        tcm_bytes: The most bytes of TCM that it had at a time; -1 where they are not known.
    """

    cmd: int
    op: str = ""
    priority: int = 0
    custom_id: int = 0
    core_mask: int = 0
    input: tuple[int, int] = (0, 0)
    output: tuple[int, int] = (0, 0)
    ranges: tuple[Range, ...] = ()
    site: str = ""
    core: int = 0
    status: int | None = None
    text: str = ""
    submitted_ns: int = 0
    waited_ns: int = 0
    claimed_ns: int = 0
    started_ns: int = 0
    ended_ns: int = 0
    cycles: int = -1
    ddr_bytes: int = -1
    tcm_bytes: int = -1

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for ``call.json``."""
        data = self._asdict()
        data["ranges"] = [one._asdict() for one in self.ranges]
        for block in ("input", "output"):
            data[block] = dict(zip(("phy_addr", "size_bytes"), data[block], strict=True))
        return data

    def line(self, name: str) -> str:
        """Its line in the index."""
        told = ("cmd", "op", "core", "status", "started_ns", "ended_ns")
        return json.dumps({"call": name, **{key: getattr(self, key) for key in told}}) + "\n"


class Recorded(NamedTuple):
    """A call of a recording, and the folder that holds it."""

    name: str
    folder: Path
    call: Call

    def bytes_of(self, used: Range, *, is_after: bool = False) -> bytes:
        """The bytes of a range before the call, or after it.

        Raises:
            BadRecordingError: the file is not there, or has another size.
        """
        file = self.folder / (used.after if is_after and used.after else used.before)
        try:
            raw = read_regular(file, max(used.size_bytes, MAX_TEXT), follow=False)
        except OSError as error:
            raise BadRecordingError(f"{file} cannot be read: {error.strerror}.") from None
        if len(raw) != used.size_bytes:
            raise BadRecordingError(f"{file} has {len(raw)} bytes; {CALL} says {used.size_bytes}.")
        return raw


def uncovered(ranges: Sequence[Range], start: int, end: int) -> list[tuple[int, int]]:
    """The parts of ``[start, end)`` that lie in none of the ranges, as starts and ends in ascending order."""
    found = []
    for one in sorted(ranges):
        if one.phy_addr < end and start < one.end:
            if start < one.phy_addr:
                found.append((start, one.phy_addr))
            start = one.end
    if start < end:
        found.append((start, end))
    return found


def begin(directory: Path, recorder: str) -> None:
    """Make an empty recording, or continue with one that another process of the program has begun.

    Args:
        directory: Where; it is made.
        recorder: Who records, for the reader.

    Raises:
        BadRecordingError: something else is in the directory, or a recording of another version. OSError.
    """
    (directory / CALLS).parent.mkdir(parents=True, exist_ok=True)
    if not (directory / HEAD).exists():
        if any(directory.iterdir()):
            raise BadRecordingError(f"{directory} is not empty, and no recording; name another directory.")
        head = {"format": FORMAT, "version": VERSION, "recorder": recorder}
        write_text(directory / HEAD, json.dumps(head) + "\n")
    _check_head(directory)
    (directory / CALLS).mkdir(exist_ok=True)


def write_text(file: Path, text: str) -> None:
    """Write a file so that it is there with all of its text, or as it was before."""
    part = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except BaseException:  # a full disk
        with suppress(OSError):
            part.unlink()
        raise


def read(directory: Path) -> tuple[list[Recorded], list[str]]:
    """The calls of a recording, those that ended in the order of their ends, then those that did not.

    Returns:
        The calls, and sentences on what is missing: where the recording stopped, and folders that are not complete.

    Raises:
        BadRecordingError: it is not a recording, or a file in it is invalid.
    """
    _check_head(directory)
    names, notes = [], []
    for line in _index(directory / INDEX):
        if why := line.get("stopped"):
            notes.append(printable(f"The recording stops early: {why}"))
        elif isinstance(name := line.get("call"), str) and "/" not in name:
            names.append(name)
    known = set(names)
    try:
        folders = sorted(entry.name for entry in (directory / CALLS).iterdir() if entry.name not in known)
    except OSError as error:
        raise BadRecordingError(f"{directory / CALLS} cannot be read: {error.strerror}.") from None
    calls = [_read_call(directory / CALLS / name) for name in names]
    for name in folders:
        if (directory / CALLS / name / CALL).exists():
            calls.append(_read_call(directory / CALLS / name))
        else:
            notes.append(f"Call {name} is not complete, and left out: its recorder was ended.")
    return calls, notes


def _check_head(directory: Path) -> None:
    file = directory / HEAD
    head = _object(file)
    if head.get("format") != FORMAT:
        raise BadRecordingError(f"{file} is not of a recording: its format is {head.get('format')!r}, not {FORMAT!r}.")
    if head.get("version") != VERSION:
        raise BadRecordingError(f"{file} has version {head.get('version')!r}; this hbrt reads {VERSION}.")


def _index(file: Path) -> Iterator[Mapping[str, Any]]:
    """The lines of the index; a last one that was cut off is left out."""
    try:
        lines = read_regular(file, MAX_INDEX, follow=False).decode().splitlines(keepends=True)
    except FileNotFoundError:  # no call has ended
        return
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadRecordingError(f"{file} cannot be read: {why}.") from None
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            return
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise BadRecordingError(f"{file}, line {number}, is not a JSON object.")
        yield data


def _object(file: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(read_regular(file, MAX_TEXT, follow=False))
    except OSError as error:
        raise BadRecordingError(f"{file} cannot be read: {error.strerror}. Is this a recording?") from None
    except ValueError as error:
        raise BadRecordingError(f"{file} is not JSON: {error}.") from None
    except RecursionError:
        raise BadRecordingError(f"{file} cannot be read: its JSON is nested too deeply.") from None
    if not isinstance(data, dict):
        raise BadRecordingError(f"{file} is not a JSON object.")
    return data


def _read_call(folder: Path) -> Recorded:
    file = folder / CALL
    if folder.is_symlink() or folder.parent.is_symlink():
        raise BadRecordingError(f"{folder} is a link, or inside one; a recording must contain its own files.")
    data = dict(_object(file))
    if type(data.get("cmd")) is not int:
        raise BadRecordingError(f"{file} has no command number 'cmd'.")
    try:
        ranges = tuple(sorted(_range(one) for one in data.pop("ranges", [])))
        blocks: dict[str, Any] = {name: _block(data.pop(name)) for name in ("input", "output") if name in data}
        known = {key: value for key, value in data.items() if key in Call._fields}
        _check_types(known)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadRecordingError(f"{file} is not as docs/recording.md says: {error}.") from None
    call = Call(**known, **blocks, ranges=ranges)
    for before, after in pairwise(ranges):
        if after.phy_addr < before.end:
            raise BadRecordingError(f"{file} has ranges that overlap at {after.phy_addr:#x}.")
    for name, (phy_addr, size_bytes) in blocks.items():
        if uncovered(ranges, phy_addr, phy_addr + size_bytes):
            raise BadRecordingError(f"{file} has no range that holds all of the {name} block, at {phy_addr:#x}.")
    return Recorded(folder.name, folder, call)


def _check_types(known: Mapping[str, Any]) -> None:
    for key, value in known.items():
        is_text = key in {"op", "site", "text"}
        is_absent = key == "status" and value is None
        if not (is_absent or type(value) is (str if is_text else int)):
            raise ValueError(f"{key} is {value!r}")


def _range(data: Mapping[str, Any]) -> Range:
    phy_addr, size_bytes = _block(data)
    before, after = data["before"], data.get("after") or ""
    for name in (before, after):
        if not isinstance(name, str) or "/" in name or "\0" in name:
            raise ValueError(f"{name!r} is not a name of a file of the folder")
    if not size_bytes or not before:
        raise ValueError(f"the range at {phy_addr:#x} is empty")
    return Range(phy_addr, size_bytes, before, after)


def _block(data: Mapping[str, Any]) -> tuple[int, int]:
    phy_addr, size_bytes = data["phy_addr"], data["size_bytes"]
    if type(phy_addr) is not int or type(size_bytes) is not int or min(phy_addr, size_bytes) < 0:
        raise ValueError(f"{phy_addr!r}+{size_bytes!r} is not a range of physical memory")
    if phy_addr + size_bytes > MAX_ADDRESS:
        raise ValueError(f"{phy_addr:#x}+{size_bytes:#x} passes the end of the address space")
    return phy_addr, size_bytes

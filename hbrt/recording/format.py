"""The files of a recording and their contents; docs/recording.md describes them for other writers.

A recording is a directory: ``recording.json``, a folder for each call under ``calls/``, and ``index.jsonl``, to which a
line is appended when a call ends. A call's folder is always consistent: files are written before they are named.
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
MAX_TEXT = 1 << 20  # limit of a JSON file
MAX_INDEX = 1 << 28
MAX_ADDRESS = (1 << 64) - 1


class BadRecordingError(WrongUseError):
    """A directory is not a recording, or one of its files is invalid; the message says which, and what is wrong."""


class Range(NamedTuple):
    """A range of physical memory used by a call.

    Attributes:
        phy_addr: Its physical address.
        size_bytes: Its size.
        before: File with its bytes when the call began to use it.
        after: File with its bytes at the end; empty if unchanged.
    """

    phy_addr: int
    size_bytes: int
    before: str
    after: str = ""

    @property
    def end(self) -> int:
        """The address just past it."""
        return self.phy_addr + self.size_bytes


class Call(NamedTuple):
    """A call of an op. Times are nanoseconds on one clock of the recording machine, 0 if unknown.

    Attributes:
        cmd: Command number.
        op: Name of the op; may be empty.
        priority: 0..255, larger first.
        custom_id: Order among equal priorities, smaller first.
        core_mask: The cores that could run it, 0 for any.
        input: Physical address and size of the input block, zeros for none.
        output: Likewise for the output block.
        ranges: The memory that it used, without overlaps.
        site: ``file:line`` of the program that submitted it; may be empty.
        core: The core that ran it.
        status: Its result; None if it did not end.
        text: The failure's message.
        submitted_ns: When the program submitted it.
        waited_ns: When the program began to wait for it.
        claimed_ns: When the core took it.
        started_ns: When the op began.
        ended_ns: When the op ended.
        cycles: Modeled cycles; -1 if unknown.
        ddr_bytes: Bytes that iDMA and loads moved between the core and the DDR; -1 if unknown.
        tcm_bytes: Maximum TCM bytes in use at once; -1 if unknown.
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
        """Return it as plain data, for ``call.json``."""
        data = self._asdict()
        data["ranges"] = [one._asdict() for one in self.ranges]
        for block in ("input", "output"):
            data[block] = dict(zip(("phy_addr", "size_bytes"), data[block], strict=True))
        return data

    def line(self, name: str) -> str:
        """Return its line for the index."""
        told = ("cmd", "op", "core", "status", "started_ns", "ended_ns")
        return json.dumps({"call": name, **{key: getattr(self, key) for key in told}}) + "\n"


class Recorded(NamedTuple):
    """A recorded call, and its folder."""

    name: str
    folder: Path
    call: Call

    def bytes_of(self, used: Range, *, is_after: bool = False) -> bytes:
        """Return the bytes of a range before or after the call.

        Raises:
            BadRecordingError: the file is missing, or has the wrong size.
        """
        file = self.folder / (used.after if is_after and used.after else used.before)
        try:
            raw = read_regular(file, max(used.size_bytes, MAX_TEXT), follow=False)
        except OSError as error:
            raise BadRecordingError(f"Cannot read {file}: {error.strerror}.") from None
        if len(raw) != used.size_bytes:
            raise BadRecordingError(f"{file} has {len(raw)} bytes; {CALL} says {used.size_bytes}.")
        return raw


def uncovered(ranges: Sequence[Range], start: int, end: int) -> list[tuple[int, int]]:
    """Yield the parts of ``[start, end)`` outside all ranges, as starts and ends in ascending order."""
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
    """Create an empty recording, or continue one started by another process of the program.

    Args:
        directory: Its directory, which is created.
        recorder: Name of the recorder, for readers.

    Raises:
        BadRecordingError: the directory contains something else, or a recording of another version. OSError.
    """
    (directory / CALLS).parent.mkdir(parents=True, exist_ok=True)
    if not (directory / HEAD).exists():
        if any(directory.iterdir()):
            raise BadRecordingError(f"{directory} is not empty and not a recording; use another directory.")
        head = {"format": FORMAT, "version": VERSION, "recorder": recorder}
        write_text(directory / HEAD, json.dumps(head) + "\n")
    _check_head(directory)
    (directory / CALLS).mkdir(exist_ok=True)


def write_text(file: Path, text: str) -> None:
    """Write a file atomically."""
    part = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except BaseException:  # a full disk
        with suppress(OSError):
            part.unlink()
        raise


def read(directory: Path) -> tuple[list[Recorded], list[str]]:
    """Return the calls of a recording: finished ones in the order they ended, then unfinished ones.

    Returns:
        The calls, and messages on what is missing: where the recording stopped, and incomplete folders.

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
        raise BadRecordingError(f"Cannot read {directory / CALLS}: {error.strerror}.") from None
    calls = [_read_call(directory / CALLS / name) for name in names]
    for name in folders:
        if (directory / CALLS / name / CALL).exists():
            calls.append(_read_call(directory / CALLS / name))
        else:
            notes.append(f"Skipped incomplete call {name}: its recorder was killed.")
    return calls, notes


def _check_head(directory: Path) -> None:
    file = directory / HEAD
    head = _object(file)
    if head.get("format") != FORMAT:
        raise BadRecordingError(f"{file} is not a recording's: its format is {head.get('format')!r}, not {FORMAT!r}.")
    if head.get("version") != VERSION:
        raise BadRecordingError(f"{file} has version {head.get('version')!r}; this hbrt reads {VERSION}.")


def _index(file: Path) -> Iterator[Mapping[str, Any]]:
    """Return the lines of the index, without a truncated last one."""
    try:
        lines = read_regular(file, MAX_INDEX, follow=False).decode().splitlines(keepends=True)
    except FileNotFoundError:  # no call has ended yet
        return
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadRecordingError(f"Cannot read {file}: {why}.") from None
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
        raise BadRecordingError(f"Cannot read {file}: {error.strerror}. Is this a recording?") from None
    except ValueError as error:
        raise BadRecordingError(f"{file} is not JSON: {error}.") from None
    except RecursionError:
        raise BadRecordingError(f"Cannot read {file}: its JSON is nested too deeply.") from None
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
        raise BadRecordingError(f"{file} does not follow docs/recording.md: {error}.") from None
    call = Call(**known, **blocks, ranges=ranges)
    for before, after in pairwise(ranges):
        if after.phy_addr < before.end:
            raise BadRecordingError(f"{file} has ranges that overlap at {after.phy_addr:#x}.")
    for name, (phy_addr, size_bytes) in blocks.items():
        if uncovered(ranges, phy_addr, phy_addr + size_bytes):
            raise BadRecordingError(f"{file} has no range that contains the whole {name} block at {phy_addr:#x}.")
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
            raise ValueError(f"{name!r} is not the name of a file in the folder")
    if not size_bytes or not before:
        raise ValueError(f"the range at {phy_addr:#x} is empty")
    return Range(phy_addr, size_bytes, before, after)


def _block(data: Mapping[str, Any]) -> tuple[int, int]:
    phy_addr, size_bytes = data["phy_addr"], data["size_bytes"]
    if type(phy_addr) is not int or type(size_bytes) is not int or min(phy_addr, size_bytes) < 0:
        raise ValueError(f"{phy_addr!r}+{size_bytes!r} is not a range of physical memory")
    if phy_addr + size_bytes > MAX_ADDRESS:
        raise ValueError(f"{phy_addr:#x}+{size_bytes:#x} exceeds the address space")
    return phy_addr, size_bytes

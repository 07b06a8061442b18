"""ELF files: whether a core can load one as an image, judging by its headers. Pure.

The numbers of machines, types and tags are from the system's ``elf.h``.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Final

from dsp_server.hardware.tcm import BANK_RAW_BYTES

MAGIC: Final = b"\x7fELF"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_HEADER_32 = struct.Struct("<16sHHIIIIIHHHHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_PROGRAM_32 = struct.Struct("<IIIIIIII")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_ENTRY = struct.Struct("<QQ")
HEADER_BYTES: Final = _HEADER.size
_CLASS_32, _CLASS_64, _LITTLE_ENDIAN = 1, 2, 1
_HEXAGON: Final = 164
_RELOCATABLE, _EXECUTABLE, _SHARED, _CORE = 1, 2, 3, 4
_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_NEEDED, _STRINGS = 1, 5
_MACHINES: Final = {
    3: "32-bit x86", 8: "MIPS", 21: "64-bit PowerPC", 22: "S/390", 40: "32-bit ARM", 62: "x86_64", 94: "Xtensa",
    164: "Hexagon", 183: "aarch64", 243: "riscv64", 258: "loongarch64",
}  # fmt: skip
_TCM: Final = {b".dram0.data": 0, b".dram1.data": 1}
_BUILD = "Build it with 'hbrt cc --dsp -o {name} FILE...'."


class NotLoadableError(ValueError):
    """The file is not a C image for this machine; the message continues a sentence that begins with its path."""


def is_hexagon(raw: bytes) -> bool:
    """Whether these bytes are a Hexagon program, which QEMU runs."""
    return len(raw) >= HEADER_BYTES and is_elf(raw) and ident_and_kind(raw) == (_CLASS_32, _EXECUTABLE, _HEXAGON)


def version_of(raw: bytes) -> int:
    """Code version of a Hexagon program: 0x67 for v67."""
    return int(struct.unpack_from("<I", raw, 36)[0]) & 0xFF


def ident_and_kind(raw: bytes) -> tuple[int, int, int]:
    """Class, type and machine of an ELF file."""
    kind, machine = struct.unpack_from("<HH", raw, 16)
    return raw[4], kind, machine


def is_elf(raw: bytes) -> bool:
    """Whether these bytes are an ELF file."""
    return raw.startswith(MAGIC)


def check(raw: bytes, name: str) -> None:
    """Check the bytes of an ELF file.

    Args:
        raw: The whole file.
        name: The file's name, for the advice.

    Raises:
        NotLoadableError: it is truncated, built for another CPU, or not a shared library.
    """
    if len(raw) < _HEADER.size:
        raise NotLoadableError(f"is truncated: an ELF file of {len(raw)} bytes has no header.")
    if is_hexagon(raw):
        _check_whole(raw, [(offset, size) for kind, offset, _, _, size, *_ in _segments_32(raw) if kind == _LOAD])
        return
    ident, kind, machine, *_ = _HEADER.unpack_from(raw)
    build = _BUILD.format(name=name)
    here = os.uname().machine
    is_usual = ident[4] == _CLASS_64 and ident[5] == _LITTLE_ENDIAN
    built_for = _MACHINES.get(machine, f"machine {machine}") if is_usual or machine in _MACHINES else "another CPU"
    if built_for != here or not is_usual:
        raise NotLoadableError(
            f"is built for {built_for}, but cores run on {here} here: an image must be built for this machine. {build}"
        )
    if kind == _RELOCATABLE:
        raise NotLoadableError(f"is an object file, which has not been linked yet. {build}")
    segments = list(_segments(raw))
    if kind == _CORE or (kind not in {_EXECUTABLE, _SHARED}):
        raise NotLoadableError(f"is not a shared library. {build}")
    if kind == _EXECUTABLE or any(one[0] == _INTERPRETER for one in segments):
        raise NotLoadableError(f"is an executable, but an image must be a shared library. {build}")
    _check_whole(raw, [(offset, size) for _, _, offset, _, _, size, *_ in segments])
    for section, size in _sections(raw):
        if (bank := _TCM.get(section)) is not None and size > BANK_RAW_BYTES:
            raise NotLoadableError(
                f"puts {size} bytes into {section.decode()}, but TCM bank {bank} has {BANK_RAW_BYTES}: use smaller "
                "pools (HB_DSP_DRAM0_POOL_SIZE), or fewer other variables with _HB_LOCAL_DRAM0_ or _HB_LOCAL_DRAM1_."
            )


def _check_whole(raw: bytes, parts: list[tuple[int, int]]) -> None:
    """Refuse a file that does not have all bytes of its segments, given by offset and size."""
    end = max((offset + size for offset, size in parts), default=0)
    if not parts or end > len(raw):
        raise NotLoadableError(f"is truncated: it has {len(raw)} bytes, but its parts need {end}. Build it again.")


def needed(raw: bytes) -> list[str]:
    """Return the names of the libraries that a shared library needs; unreadable names are skipped."""
    try:
        segments = list(_segments(raw))
        dynamic = next(one for one in segments if one[0] == _DYNAMIC)
        entries = list(_ENTRY.iter_unpack(raw[dynamic[2] : dynamic[2] + dynamic[5] // _ENTRY.size * _ENTRY.size]))
        address = next(value for tag, value in entries if tag == _STRINGS)
        start = next(
            address - one[3] + one[2] for one in segments if one[0] == _LOAD and one[3] <= address < one[3] + one[5]
        )
        offsets = [start + value for tag, value in entries if tag == _NEEDED]
        return [raw[at : raw.index(b"\0", at)].decode() for at in offsets]
    except (StopIteration, ValueError, struct.error):
        return []


def _sections(raw: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield names and sizes of the sections; none if the section table was stripped."""
    header = _HEADER.unpack_from(raw)
    at, size, count, names = header[6], header[11], header[12], header[13]
    if not at or size < _SECTION.size or names >= count or at + count * size > len(raw):
        return
    rows = [_SECTION.unpack_from(raw, at + index * size) for index in range(count)]
    texts = raw[rows[names][4] : rows[names][4] + rows[names][5]]
    for row in rows:
        yield texts[row[0] :].partition(b"\0")[0], row[5]


def _segments(raw: bytes) -> Iterator[tuple[int, ...]]:
    """Yield program headers: type, flags, offset, address, physical address, size in file and memory, alignment."""
    header = _HEADER.unpack_from(raw)
    return _rows(raw, header[5], header[9], header[10], _PROGRAM)


def _segments_32(raw: bytes) -> Iterator[tuple[int, ...]]:
    """Yield a 32-bit file's program headers: type, offset, address, physical address, size in file and memory."""
    header = _HEADER_32.unpack_from(raw)
    return _rows(raw, header[5], header[9], header[10], _PROGRAM_32)


def _rows(raw: bytes, at: int, size: int, count: int, form: struct.Struct) -> Iterator[tuple[int, ...]]:
    for index in range(count):
        if at + index * size + form.size > len(raw):
            raise NotLoadableError("is truncated: its segment table is missing. Build it again.")
        yield form.unpack_from(raw, at + index * size)

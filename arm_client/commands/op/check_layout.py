"""``hbrt op check-layout``: the named structures and their findings, as text or as data."""

from __future__ import annotations

import ctypes
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from arm_client.commands.op.bounded import bounded
from arm_client.commands.op.loading import BadNameError, load_named
from hbrt.cli.exits import Exit
from hbrt.cli.report import Report
from hbrt.cli.tables import Column, Table, number, numbers
from hbrt.findings.record import Severity
from hbrt.findings.text import counted
from hbrt.layout import C_SUFFIXES
from hbrt.layout.ctypes_class import declared_at, of_class
from hbrt.layout.numpy_dtype import of_dtype
from hbrt.layout.rules import Remark, differences, remarks_on
from hbrt.layout.structure import LayoutError, Structure
from hbrt.lazy import how_to_install

WIDTH = 80
SIDES = ("A", "B")


class Side(NamedTuple):
    """A structure, and its name as given by the user."""

    what: str
    structure: Structure


def read_side(what: str, include: Sequence[Path], define: Sequence[str]) -> Side:
    """The structure that is named as FILE.h:STRUCT, FILE.py:CLASS or MODULE:CLASS.

    Raises:
        BadNameError: it does not exist or cannot be read.
        OSError: a C file cannot be read.
    """
    where, _, name = what.rpartition(":")
    if what.lower().endswith(C_SUFFIXES):
        raise BadNameError(f"{what!r} is the name of a file: expected {what}:STRUCT.")
    try:
        if where.lower().endswith(C_SUFFIXES):
            return Side(what, _read_c(Path(where), name, include, define))
        found = load_named(what, "class", is_declared=True)
        if isinstance(found, type) and issubclass(found, ctypes.Structure | ctypes.Union):
            return Side(what, of_class(found, declared_at(found)))
        if isinstance(found, np.dtype):
            return Side(what, of_dtype(found, name))
    except LayoutError as error:
        raise BadNameError(str(error)) from None
    raise BadNameError(f"{what} is not a ctypes.Structure, ctypes.Union or numpy dtype, but {found!r:.80}.")


def _read_c(file: Path, name: str, include: Sequence[Path], define: Sequence[str]) -> Structure:
    try:
        from hbrt.layout.c_declaration import of_declaration
    except ImportError as error:
        raise BadNameError(
            f"C declarations are read by libclang, which cannot be loaded ({error}): {how_to_install('layout')}."
        ) from None
    return bounded(lambda: of_declaration(file, name, include, define), str(file))


def remarks_of(sides: Sequence[Side]) -> list[Remark]:
    """The findings, differences between two first; a finding for both is reported once, with the line of the first."""
    remarks = differences(sides[0].structure, sides[1].structure, SIDES) if len(sides) == 2 else []
    known = set()
    for side in sides:
        for remark in remarks_on(side.structure):
            if remark.text not in known:
                known.add(remark.text)
                remarks.append(remark)
    return remarks


def report(sides: Sequence[Side], remarks: Sequence[Remark], *, is_good: bool) -> Report:
    """The fields, the remarks, and a last line that counts them; the exit code is 0 if all is good."""
    data = {
        "structures": [{"what": side.what, **side.structure.as_dict()} for side in sides],
        "remarks": [remark.as_dict() for remark in remarks],
        "good": is_good,
    }
    return Report(data, *_parts(sides, remarks), code=Exit.GOOD if is_good else Exit.FAILED)


def _parts(sides: Sequence[Side], remarks: Sequence[Remark]) -> Iterator[object]:
    if len(sides) == 1:
        yield Table([*numbers("OFFSET", "BYTES"), Column("FIELD"), Column("TYPE")], _rows(sides[0].structure))
    else:
        columns = [column for name in SIDES for column in (number(f"{name}: OFFSET"), Column("TYPE"))]
        yield Table([Column("FIELD"), *columns], _both(sides))
    for remark in remarks:
        site = f"{remark.site}: " if remark.site else ""
        yield _folded(f"{site}{remark.severity}: {remark.text} [{remark.kind}]")
    for name, side in zip(SIDES, sides, strict=False):
        label = f"{name} is {side.what}" if len(sides) == 2 else side.what
        size, tail = side.structure.size_bytes, side.structure.tail_bytes
        behind = f", {tail} of them after the last field" if tail else ""
        yield _folded(f"{label}: {size} bytes{behind}, aligned to {side.structure.alignment}.")
    errors = sum(remark.severity == Severity.ERROR for remark in remarks)
    yield f"{_counted(errors, 'error')}, {_counted(len(remarks) - errors, 'warning')}.".capitalize()


def _rows(structure: Structure) -> list[tuple[int, int, str, str]]:
    rows = [(leaf.offset, leaf.size_bytes, leaf.name, leaf.c_type) for leaf in structure.leaves()]
    rows += [(hole.offset, hole.size_bytes, "(hole)", "") for hole in structure.holes()]
    if structure.tail_bytes:
        rows.append((structure.size_bytes - structure.tail_bytes, structure.tail_bytes, "(padding)", ""))
    return sorted(rows, key=lambda row: row[0])


def _both(sides: Sequence[Side]) -> list[tuple[object, ...]]:
    left, right = ({leaf.name: leaf for leaf in side.structure.leaves()} for side in sides)
    rows = []
    for name in {**left, **right}:
        cells = [(field.offset, field.c_type) if field else ("", "") for field in (left.get(name), right.get(name))]
        rows.append((name, *cells[0], *cells[1]))
    return rows


def _counted(number: int, noun: str) -> str:
    return counted(number, noun) if number else f"no {noun}s"


def _folded(text: str) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)

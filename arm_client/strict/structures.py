"""Parameter structures that a program passes to ops, found under the check layout, once per class.

A call of the C names gives only an address. Its structures are the ctypes objects in the input block when the task is
submitted, as created by ``Param.from_buffer(mem.view())``. Finding them means searching all objects of the process,
which takes milliseconds, so it is done once per stack from which the program submits. Those of a C program are found in
its source, once per submitting line.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arm_client.cabi import call_site
from arm_client.cabi.call_site import LIBRARIES
from arm_client.strict.report import Mistake
from hbrt.borders.interrupts import let_out
from hbrt.findings.record import Place, Severity
from hbrt.layout.ctypes_class import declared_at, of_class
from hbrt.layout.rules import hole_sentence, remarks_on
from hbrt.layout.structure import LayoutError
from hbrt.lazy import how_to_install
from hbrt.native.files import include_dir

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from hbrt.layout.structure import Structure

_log = logging.getLogger("hbrt")


class StructureWatch:
    """Finds fields in a program's structures that the DSP may read differently.

    Args:
        report: Receives a mistake.
    """

    def __init__(self, report: Callable[[Mistake], None]) -> None:
        self._report = report
        self._ways: set[tuple[int, int, int]] = set()
        self._known: set[type | str] = set()

    def check_input(self, cmd: int, address: int, size_bytes: int) -> None:
        """Check the structures in an input block, given by its virtual address."""
        if c_line := call_site.of_c():
            if c_line not in self._known:
                self._known.add(c_line)
                self._check_c(c_line)
            return
        way = cmd, size_bytes, _stack()
        if way not in self._ways:
            self._ways.add(way)
            for kind in _classes_in(address, address + size_bytes):
                self.check_class(kind)

    def _check_c(self, c_line: str) -> None:
        """Check the structures in the input block of a call at a C line; does nothing without the source."""
        file, _, line = c_line.rpartition(":")
        read = _reader_of_c()
        if read is None or not line.isdigit() or not Path(file).is_file():
            return
        try:
            found = read(Path(file), int(line), include_dir("arm"))
        except LayoutError as error:
            self._report(Mistake("dsp-layout", f"A C parameter structure: {error}", (Place("submitted"),)))
            return
        except Exception as error:  # noqa: BLE001 - a call must not fail by a look at its source
            let_out(error)
            _log.warning("The check layout cannot check %s: libclang failed with %r.", c_line, error)
            return
        for structure in found:
            if (known_by := structure.site or structure.name) not in self._known:
                self._known.add(known_by)
                for mistake in _mistakes_in(structure, structure.site):
                    self._report(mistake)

    def check_class(self, kind: type[Any]) -> None:
        """Check a ctypes structure class; the runtime's own classes are the same on both sides."""
        if kind in self._known or _is_the_runtimes(kind):
            return
        self._known.add(kind)
        for mistake in mistakes_of(kind):
            self._report(mistake)


@functools.cache
def _reader_of_c() -> Callable[[Path, int, Path], list[Structure]] | None:
    """Return the reader of a C call's structures; None, with a warning, without libclang."""
    try:
        from hbrt.layout.c_parameters import parameters_of_call
    except ImportError as error:
        _log.warning(
            "The check layout cannot check C structures, because libclang cannot be loaded (%s). To install it, %s.",
            error,
            how_to_install("layout"),
        )
        return None
    return parameters_of_call


def mistakes_of(kind: type[Any]) -> list[Mistake]:
    """Report what the DSP may read differently in a ctypes structure class: holes, pointers, byte order."""
    site = declared_at(kind)
    try:
        return _mistakes_in(of_class(kind, site, is_known=_is_the_runtimes), site)
    except LayoutError as error:
        name, places = _told(kind.__name__, site)
        return [Mistake("dsp-layout", f"{name}: {error}", places)]


def _told(name: str, site: str | None) -> tuple[str, tuple[Place, Place]]:
    """Return the beginning of a message, and its places."""
    named = f"The parameter structure {name}{f' ({site})' if site else ''}"
    return named, (Place("submitted"), Place("declared", site))


def _mistakes_in(structure: Structure, site: str | None) -> list[Mistake]:
    name, places = _told(structure.name, site)
    found = []
    if holes := structure.holes():
        others = "" if len(holes) == 1 else f" It has {len(holes)} such holes: 'hbrt op check-layout' shows them."
        found.append(Mistake("hole", f"{name} has {hole_sentence(holes[0])}{others}", places))
    if errors := [remark for remark in remarks_on(structure) if remark.severity is Severity.ERROR]:
        found.append(Mistake("dsp-layout", f"{name}: {' '.join(remark.text for remark in errors)}", places))
    return found


def _classes_in(start: int, end: int) -> set[type[Any]]:
    """Return the classes of the ctypes structures in an address range."""
    kinds = (ctypes.Structure, ctypes.Union)
    found = (one for one in gc.get_objects() if issubclass(type(one), kinds))
    return {
        type(one) for one in found if start <= ctypes.addressof(one) < ctypes.addressof(one) + ctypes.sizeof(one) <= end
    }


def _stack() -> int:
    """Return a number for this thread's stack: the lines from its first function to this one."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as the logging library finds its caller
    lines = []
    while frame is not None:
        lines.append((id(frame.f_code), frame.f_lineno))
        frame = frame.f_back
    return hash(tuple(lines))


def _is_the_runtimes(kind: type[Any]) -> bool:
    """Return whether the runtime declares all of its fields."""
    declare = [base for base in kind.__mro__ if "_fields_" in vars(base)]
    return bool(declare) and all(base.__module__.partition(".")[0] in LIBRARIES for base in declare)

"""Parameter structures that a program gives to ops: found under the check layout, each class once.

A call of the C names gives an address alone. Its structures are the ctypes objects that lie in the input block when the
task is submitted, as ``Param.from_buffer(mem.view())`` makes them. The search for them goes through all objects of the
process, which takes milliseconds. So it runs once for each stack from which the program submits.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from arm_client.cabi.call_site import LIBRARIES
from arm_client.strict.report import Mistake
from hbrt.findings.record import Place, Severity
from hbrt.layout.ctypes_class import declared_at, of_class
from hbrt.layout.rules import hole_sentence, remarks_on
from hbrt.layout.structure import LayoutError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


_Given = TypeVar("_Given")
_Held = TypeVar("_Held")


class StructureWatch:
    """Finds what the DSP may read differently in the structures of one program.

    Args:
        report: Takes a mistake.
    """

    def __init__(self, report: Callable[[Mistake], None]) -> None:
        self._report = report
        self._ways: set[tuple[int, int, int]] = set()
        self._known: set[type] = set()

    def check_input(self, cmd: int, address: int, size_bytes: int) -> None:
        """Check the structures in an input block, given by its virtual address."""
        way = cmd, size_bytes, _stack()
        if way not in self._ways:
            self._ways.add(way)
            for kind in _classes_in(address, address + size_bytes):
                self.check_class(kind)

    def watched(self, hold: Callable[[_Given], _Held]) -> Callable[[_Given], _Held]:
        """A function that checks a structure, and then makes a parameter block of it."""

        def check_and_hold(params: _Given) -> _Held:
            if isinstance(params, ctypes.Structure | ctypes.Union):
                self.check_class(type(params))
            return hold(params)

        return check_and_hold

    def check_class(self, kind: type[Any]) -> None:
        """Check a class of ctypes structures; the runtime's own classes are the same on both sides."""
        if kind in self._known or _is_the_runtimes(kind):
            return
        self._known.add(kind)
        for mistake in mistakes_of(kind):
            self._report(mistake)


def mistakes_of(kind: type[Any]) -> list[Mistake]:
    """What the DSP may read differently in a class of ctypes structures: its holes, pointers, byte order."""
    site = declared_at(kind)
    name = f"The parameter structure {kind.__name__}{f' ({site})' if site else ''}"
    places = Place("submitted"), Place("declared", site)
    try:
        structure = of_class(kind, site, is_known=_is_the_runtimes)
    except LayoutError as error:
        return [Mistake("dsp-layout", f"{name}: {error}", places)]
    found = []
    if holes := structure.holes():
        others = "" if len(holes) == 1 else f" It has {len(holes)} such holes: 'hbrt op check-layout' shows them."
        found.append(Mistake("hole", f"{name} has {hole_sentence(holes[0])}{others}", places))
    if errors := [remark for remark in remarks_on(structure) if remark.severity is Severity.ERROR]:
        found.append(Mistake("dsp-layout", f"{name}: {' '.join(remark.text for remark in errors)}", places))
    return found


def _classes_in(start: int, end: int) -> set[type[Any]]:
    """The classes of the ctypes structures that lie in a range of addresses."""
    kinds = (ctypes.Structure, ctypes.Union)
    found = (one for one in gc.get_objects() if issubclass(type(one), kinds))
    return {
        type(one) for one in found if start <= ctypes.addressof(one) < ctypes.addressof(one) + ctypes.sizeof(one) <= end
    }


def _stack() -> int:
    """A number for this thread's stack: the lines from its first function to this one."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as the logging library finds its caller
    lines = []
    while frame is not None:
        lines.append((id(frame.f_code), frame.f_lineno))
        frame = frame.f_back
    return hash(tuple(lines))


def _is_the_runtimes(kind: type[Any]) -> bool:
    """Whether the runtime declares each of its fields."""
    declare = [base for base in kind.__mro__ if "_fields_" in vars(base)]
    return bool(declare) and all(base.__module__.partition(".")[0] in LIBRARIES for base in declare)

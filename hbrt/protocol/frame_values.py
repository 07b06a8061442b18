"""Values used by a thread's current code: the lock that it acquires or holds, the places that its loop reads.

They come from the bytecode and existing variables; no program code is run. Values that need a call are skipped. A
diagnosis that uses this must not fail because of it, whatever the bytecode.
"""

from __future__ import annotations

import dis
import sys
from _thread import LockType, RLock
from collections import ChainMap
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeAlias

_NOTHING = object()
_NAMED = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_GLOBAL", "LOAD_NAME")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
_LOCKS = (LockType, RLock)
_OPTIMIZED = 1  # inspect.CO_OPTIMIZED: the frame of a function, whose dict is a copy
_TAKE_LOCALS = frozenset({"locals", "vars", "dir", "eval", "exec"})  # a function that uses one sees the dict itself
_KEEPS_VALUES = sys.version_info < (3, 13)  # where a frame keeps the dict of its local variables
Code: TypeAlias = list[dis.Instruction]
Names: TypeAlias = Mapping[str, Any]


class Named(NamedTuple):
    """An object used by code, and its expression there, such as ``self.flag``."""

    value: Any
    text: str


class Read(NamedTuple):
    """A read of part of an object: by an index, a slice, or an attribute name."""

    of: Named
    part: Any


def variables(frame: FrameType) -> dict[str, Any]:
    """Return a frame's local variables without leaving a trace; empty for a function that inspects them itself."""
    code = frame.f_code
    if not _TAKE_LOCALS.isdisjoint(code.co_names):
        return {}
    found = frame.f_locals
    names = dict(found)
    if _KEEPS_VALUES and code.co_flags & _OPTIMIZED:
        found.clear()  # it would keep objects that the program deletes
    return names


def acquired(frame: FrameType) -> Named | None:
    """Return the lock being acquired at a frame's instruction: ``with lock:`` or ``lock.acquire(...)``."""
    code, names = _instructions(frame.f_code), _names(frame)
    at = next((at for at, one in enumerate(code) if one.offset == frame.f_lasti), -1)
    if at > 0 and code[at].opname == "BEFORE_WITH":
        return _lock(_written(names, code, at - 1))
    if at > 0 and code[at].opname.startswith(("CALL", "PRECALL")):
        for back in range(at - 1, 0, -1):
            if _line(code[back]) != _line(code[at]):
                break
            if code[back].opname in _ATTRIBUTE:
                return _lock(_written(names, code, back - 1)) if code[back].argval == "acquire" else None
    return None


def held(frame: FrameType) -> Iterator[tuple[Named, int]]:
    """Yield the locks in whose ``with`` block a frame is, and the line of the statement."""
    code, names = _instructions(frame.f_code), _names(frame)
    for at, one in enumerate(code):
        if one.opname == "BEFORE_WITH" and one.offset < frame.f_lasti < _end_of_with(frame.f_code, code, at):
            lock = _lock(_written(names, code, at - 1))
            if lock is not None:
                yield lock, _line(one)


def read_in_loop(frame: FrameType) -> Iterator[Read]:
    """Return the reads in a frame's innermost loop, by an index or name found in the variables."""
    code, names = _instructions(frame.f_code), _names(frame)
    jumps = [
        one
        for one in code
        if "JUMP" in one.opname and isinstance(one.argval, int) and one.argval <= frame.f_lasti <= one.offset
    ]
    if not jumps:
        return
    jump = min(jumps, key=lambda one: one.offset - one.argval)
    for at, one in enumerate(code):
        if not jump.argval <= one.offset <= jump.offset:
            continue
        if one.opname in {"BINARY_SUBSCR", "BINARY_SLICE"} or (one.opname == "BINARY_OP" and one.argrepr == "[]"):
            index, before = (_slice if one.opname == "BINARY_SLICE" else _index)(names, code, at - 1)
            if index is not _NOTHING and (container := _written(names, code, before)) is not None:
                yield Read(container, index)
        elif one.opname in _ATTRIBUTE and (container := _written(names, code, at - 1)) is not None:
            yield Read(container, one.argval)


def _instructions(code: CodeType) -> Code:
    found = []
    for one in dis.get_instructions(code):
        if one.opname.startswith("LOAD_FAST") and isinstance(one.argval, tuple):  # from 3.13 on: two variables at once
            found += [one._replace(opname="LOAD_FAST", argval=name) for name in one.argval]
        elif one.opname not in {"NOP", "EXTENDED_ARG", "PUSH_NULL"}:
            found.append(one)
    return found


def _line(one: dis.Instruction) -> int:
    return (one.positions and one.positions.lineno) or 0


def _names(frame: FrameType) -> Names:
    return ChainMap(variables(frame), frame.f_globals)


def _written(names: Names, code: Code, at: int) -> Named | None:
    """Return the object that a variable and its attributes push on the stack up to an instruction."""
    path: list[str] = []
    while at >= 0 and code[at].opname in _ATTRIBUTE:
        path.insert(0, code[at].argval)
        at -= 1
    if at < 0 or not code[at].opname.startswith(_NAMED):
        return None
    name = code[at].argval
    value = names.get(name, _NOTHING)
    for attribute in path:
        # Only through the dictionary: a property or a __getattr__ would run program code.
        try:
            value = object.__getattribute__(value, "__dict__").get(attribute, _NOTHING)
        except AttributeError:
            return None
    return None if value is _NOTHING else Named(value, ".".join((name, *path)))


def _index(names: Names, code: Code, at: int) -> tuple[Any, int]:
    """Return the index on the stack after an instruction, and the instruction before those that pushed it."""
    one = code[at]
    if one.opname in {"LOAD_CONST", "LOAD_SMALL_INT"}:
        return one.argval, at - 1
    if one.opname == "BUILD_SLICE" and one.arg == 2:  # both ends, no step
        return _slice(names, code, at - 1)
    if one.opname.startswith(_NAMED):
        value = names.get(one.argval, _NOTHING)
        return (value if isinstance(value, int) else _NOTHING), at - 1
    return _NOTHING, at


def _slice(names: Names, code: Code, at: int) -> tuple[Any, int]:
    """Return the slice whose two ends are on the stack after an instruction; otherwise like ``_index``."""
    end, at = _index(names, code, at)
    begin, at = _index(names, code, at)
    return (_NOTHING if _NOTHING in (begin, end) else slice(begin, end)), at


def _lock(found: Named | None) -> Named | None:
    return found if found is not None and isinstance(found.value, _LOCKS) else None


def _end_of_with(code: CodeType, instructions: Code, at: int) -> int:
    """Return where a ``with`` block ends: after the last instruction covered by its handler."""
    if at + 1 >= len(instructions):
        return 0
    covers: list[Any] = getattr(dis.Bytecode(code), "exception_entries", [])
    handler = next((one.target for one in covers if one.start == instructions[at + 1].offset), None)
    return max((one.end for one in covers if one.target == handler), default=0)

"""The structures with which a C program fills the input block of a call, found in its source by libclang.

A call names its block, as in ``hbDSPRpc(&task, &mem, ...)``. The structures are those to which the program converts
``mem.virAddr``, and those that it copies there: by a declaration, an assignment, a cast, an argument or memcpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from clang.cindex import CursorKind, TypeKind

from hbrt.layout.c_declaration import Reader, parse
from hbrt.layout.structure import LayoutError, Structure

_CALL: Final = "hbDSPRpc"
_INPUT: Final = 1  # which of its arguments
_ADDRESS: Final = "virAddr"
_COPIES: Final = {"memcpy", "memmove", "__builtin_memcpy", "__builtin_memmove"}
_WRAPPERS = {CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR, CursorKind.UNARY_OPERATOR}
_MAKERS = {
    *_WRAPPERS,
    CursorKind.BINARY_OPERATOR,
    CursorKind.CONDITIONAL_OPERATOR,
    CursorKind.CSTYLE_CAST_EXPR,
    CursorKind.CXX_STATIC_CAST_EXPR,
    CursorKind.CXX_REINTERPRET_CAST_EXPR,
    CursorKind.CXX_FUNCTIONAL_CAST_EXPR,
    CursorKind.VAR_DECL,
}
"""What may appear between an address and the resulting pointer."""
_Block: TypeAlias = tuple[str, str]
"""The declaration of a variable or field and, for an array element, its text."""


def parameters_of_call(file: Path, line: int, runtime: Path) -> list[Structure]:
    """Return the structures in the input block of the call at a line, except the runtime's own.

    Args:
        file: The source, in C or C++.
        line: Line of the hbDSPRpc call.
        runtime: The folder of the runtime's headers.

    Returns:
        The structures; empty if the source does not show them or is incomplete.

    Raises:
        LayoutError: a structure cannot be passed to a DSP; says why.
        OSError: the file cannot be read.
    """
    unit = parse(file, [runtime])
    reader, found = Reader(unit), dict[str, Structure]()
    blocks, uses = set[_Block](), list[tuple[_Block, Any]]()
    for cursor, above in _visit(unit.cursor):
        if cursor.kind == CursorKind.CALL_EXPR and cursor.spelling == _CALL:
            blocks |= _blocks_of(cursor, str(file), line)
        elif cursor.kind == CursorKind.MEMBER_REF_EXPR and cursor.spelling == _ADDRESS:
            uses += _uses(cursor, above)
    for block, type_ in uses:
        record = type_.get_canonical().get_declaration().get_definition()
        if block not in blocks or record is None or Path(str(record.location.file)).is_relative_to(runtime):
            continue
        name = type_.spelling
        for word in ("const ", "volatile ", "struct ", "union "):
            name = name.replace(word, "")
        try:
            found.setdefault(record.get_usr(), reader.described(record, name))
        except LayoutError:
            if reader.is_whole:
                raise
    return list(found.values())


def _visit(root: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Yield each cursor with its ancestors, a list that the next step changes; long ``else if`` chains are deep."""
    left, above = [(root, 0)], list[Any]()
    while left:
        cursor, depth = left.pop()
        del above[depth:]
        yield cursor, above
        above.append(cursor)
        left += [(child, depth + 1) for child in cursor.get_children()][::-1]


def _blocks_of(call: Any, file: str, line: int) -> set[_Block]:
    """Return the input block of a call, if it is at that line."""
    start, end, given = call.extent.start, call.extent.end, list(call.get_arguments())
    is_here = str(start.file) == file and start.line <= line <= end.line
    block = _block(given[_INPUT]) if is_here and len(given) > _INPUT else None
    return {block} if block else set()


def _block(cursor: Any) -> _Block | None:
    """Return the target of an expression, without ``&``, ``*`` and parentheses."""
    text = ""
    while cursor is not None and cursor.kind in {*_WRAPPERS, CursorKind.ARRAY_SUBSCRIPT_EXPR}:
        if cursor.kind == CursorKind.ARRAY_SUBSCRIPT_EXPR:
            text = "".join(token.spelling for token in cursor.get_tokens())
        cursor = next(cursor.get_children(), None)
    declared = None if cursor is None else cursor.referenced
    return None if declared is None else (f"{declared.get_usr()}@{declared.location.offset}", text)


def _uses(address: Any, above: list[Any]) -> list[tuple[_Block, Any]]:
    """Return the block at the address, and the structure that the program fills it with, if any."""
    base = next(address.get_children(), None)
    block = None if base is None else _block(base)
    type_ = _pointed(address, above)
    return [] if block is None or type_ is None else [(block, type_)]


def _pointed(address: Any, above: list[Any]) -> Any:
    """Return the structure as which the program accesses an address, or that it copies there; None if there is none."""
    inner = address
    for outer in reversed(above):
        if outer.kind == CursorKind.CALL_EXPR:
            given = list(outer.get_arguments())
            is_target = outer.spelling in _COPIES and len(given) > 1 and given[0] == inner
            return _structure(given[1]) if is_target else None
        if outer.kind not in _MAKERS:
            return None
        if (type_ := _pointee(outer)) is not None:
            return type_
        inner = outer
    return None


def _structure(cursor: Any) -> Any:
    """Return the structure that an argument points to, ignoring casts."""
    type_ = _pointee(cursor)
    while type_ is None and cursor.kind in _MAKERS and (cursor := next(cursor.get_children(), None)) is not None:
        type_ = _pointee(cursor)
    return type_


def _pointee(cursor: Any) -> Any:
    """Return the structure that an expression or variable points to, if any."""
    pointer = cursor.type.get_canonical()
    if pointer.kind != TypeKind.POINTER or pointer.get_pointee().kind != TypeKind.RECORD:
        return None
    return cursor.type.get_pointee() if cursor.type.kind == TypeKind.POINTER else pointer.get_pointee()

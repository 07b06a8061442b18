"""The description of a C declaration, as laid out by libclang for ARM.

The DSP is a 32-bit Xtensa. Its C types match ARM's, with the same alignment, except ``long``, types based on it
(``size_t``), ``long double`` and pointers: 4, 4, 8 and 4 bytes.

Source: LLVM, XtensaTargetInfo, https://github.com/llvm/llvm-project/blob/main/clang/lib/Basic/Targets/Xtensa.h
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from clang import cindex
from clang.cindex import CursorKind, TypeKind

from hbrt.layout import CPP_SUFFIXES
from hbrt.layout.ctypes_class import DSP_LONG_DOUBLE_BYTES, DSP_POINTER_BYTES
from hbrt.layout.structure import Bits, Field, FieldKind, LayoutError, Structure

DSP_LONG_BYTES = 4

_PRELUDE = Path("/hbrt/fixed_width_types.h")  # passed to libclang as text
_PRELUDE_TEXT = """
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef long long int64_t; typedef unsigned long long uint64_t;
typedef float float32_t; typedef double float64_t;
typedef __INTPTR_TYPE__ intptr_t; typedef __UINTPTR_TYPE__ uintptr_t;
typedef __SIZE_TYPE__ size_t; typedef __PTRDIFF_TYPE__ ptrdiff_t;
#define NULL 0
#ifdef __cplusplus
extern "C" {
#endif
void *memcpy(void *, const void *, __SIZE_TYPE__);
void *memmove(void *, const void *, __SIZE_TYPE__);
#ifdef __cplusplus
}
namespace std { using ::memcpy; using ::memmove; }
#else
typedef __WCHAR_TYPE__ wchar_t;
#define bool _Bool
#define true 1
#define false 0
#endif
"""
"""Declarations of standard headers: the sizes are the same on every system."""

_ARGUMENTS = ("-target", "aarch64-linux-gnu", "-nostdinc", "-include", str(_PRELUDE))
_KEEP_GOING = 0x200  # CXTranslationUnit_KeepGoing: continue after a missing header

_SIGNED = {TypeKind.SCHAR, TypeKind.SHORT, TypeKind.INT, TypeKind.LONG, TypeKind.LONGLONG, TypeKind.INT128}
_UNSIGNED = {TypeKind.UCHAR, TypeKind.USHORT, TypeKind.UINT, TypeKind.ULONG, TypeKind.ULONGLONG, TypeKind.UINT128}
_KINDS = {
    **dict.fromkeys(_SIGNED | _UNSIGNED, FieldKind.INTEGER),
    **dict.fromkeys((TypeKind.CHAR_U, TypeKind.CHAR_S, TypeKind.WCHAR), FieldKind.CHARACTER),
    **dict.fromkeys((TypeKind.HALF, TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.LONGDOUBLE), FieldKind.FLOAT),
    **dict.fromkeys((TypeKind.POINTER, TypeKind.LVALUEREFERENCE), FieldKind.POINTER),
    TypeKind.BOOL: FieldKind.BOOL,
    TypeKind.ENUM: FieldKind.ENUM,
    TypeKind.RECORD: FieldKind.NESTED,
}
_DSP_BYTES = {
    TypeKind.LONG: DSP_LONG_BYTES,
    TypeKind.ULONG: DSP_LONG_BYTES,
    TypeKind.LONGDOUBLE: DSP_LONG_DOUBLE_BYTES,
    TypeKind.POINTER: DSP_POINTER_BYTES,
    TypeKind.LVALUEREFERENCE: DSP_POINTER_BYTES,
}
_RECORDS = {CursorKind.STRUCT_DECL, CursorKind.UNION_DECL, CursorKind.CLASS_DECL}
_NAMES = {CursorKind.TYPEDEF_DECL, CursorKind.TYPE_ALIAS_DECL}
_SCOPES = {CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC, CursorKind.UNEXPOSED_DECL, *_RECORDS}
_KNOWN_HEADERS = {"stdint.h", "stddef.h", "stdbool.h", "inttypes.h", "cstdint", "cstddef"}
_ARRAYS = {TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY}
_NOT_FOUND = "' file not found"


class _Error(NamedTuple):
    """An error reported by libclang."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def of_declaration(file: Path, name: str, include: Sequence[Path] = (), define: Sequence[str] = ()) -> Structure:
    """Describe a struct or union of a C or C++ file.

    Missing headers are ignored: fixed-width types, ``size_t`` and ``bool`` are known without any.

    Args:
        file: The file; its suffix says whether it is C++.
        name: Tag or typedef.
        include: Directories to search for headers, in addition to the file's own.
        define: Macros, as ``NAME`` or ``NAME=VALUE``.

    Raises:
        LayoutError: no such structure, or its declaration has an error; names the line.
        OSError: the file cannot be read.
    """
    unit = parse(file, include, define, options=cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES)
    return Reader(unit).structure(file, name)


def parse(file: Path, include: Sequence[Path] = (), define: Sequence[str] = (), *, options: int = 0) -> Any:
    """Parse a C or C++ file with libclang; arguments and errors as for ``of_declaration``."""
    file.open("rb").close()  # libclang's own error gives no reason
    language = ("c++", "gnu++17") if file.suffix.lower() in CPP_SUFFIXES else ("c", "gnu17")
    arguments = [*_ARGUMENTS, "-x", language[0], f"-std={language[1]}"]
    arguments += [f"-I{directory}" for directory in include] + [f"-D{macro}" for macro in define]
    try:
        return cindex.Index.create().parse(
            str(file), arguments, unsaved_files=[(str(_PRELUDE), _PRELUDE_TEXT)], options=options | _KEEP_GOING
        )
    except cindex.TranslationUnitLoadError:
        raise LayoutError(f"Cannot read {file} as {language[0].upper()}.") from None


class Reader:
    """A parsed file and its errors."""

    def __init__(self, unit: Any) -> None:
        self._root = unit.cursor
        errors = [
            _Error(str(one.location.file), one.location.line, one.spelling)
            for one in unit.diagnostics
            if one.severity >= cindex.Diagnostic.Error
        ]
        missing = [error.text for error in errors if error.text.endswith(_NOT_FOUND)]
        self._missing = [name for text in missing if (name := text.split("'")[1]) not in _KNOWN_HEADERS]
        self._errors = [error for error in errors if error.text not in missing]

    def structure(self, file: Path, name: str) -> Structure:
        """Return the structure with that name."""
        named = dict(_declared(self._root))
        if name in named:
            return self.described(named[name], name)
        near = difflib.get_close_matches(name, named, 3) or sorted(named)[:8]
        known = f"It has {', '.join(near)}." if named else "It declares none."
        raise LayoutError(f"{file} declares no struct or union {name!r}. {known}{self._reasons()}")

    @property
    def is_whole(self) -> bool:
        """Whether everything was read: no errors, and no missing headers except the language's own."""
        return not self._missing and not self._errors

    def described(self, record: Any, name: str) -> Structure:
        """Return the structure declared by a cursor."""
        self._refuse_errors_in(record)
        children = list(record.get_children())
        if any(child.kind == CursorKind.CXX_BASE_SPECIFIER or child.is_virtual_method() for child in children):
            raise LayoutError(f"{_site(record)}: {name} has a base class or virtual functions: declare a plain struct.")
        # If a field's type has an error, libclang computes no layout; the type's own declaration says why.
        cursors = list(record.type.get_fields()) or [one for one in children if one.kind == CursorKind.FIELD_DECL]
        # An unnamed bit field is padding.
        fields = tuple(self._field(cursor) for cursor in cursors if cursor.spelling or not cursor.is_bitfield())
        size = record.type.get_size()
        if not fields or size <= 0:
            raise LayoutError(f"{_site(record)}: {name} has no fields of known size.{self._reasons()}")
        is_union = record.kind == CursorKind.UNION_DECL
        return Structure(name, size, record.type.get_align(), fields, is_union, _site(record))

    def _field(self, cursor: Any) -> Field:
        name = cursor.spelling if cursor.spelling.isidentifier() else ""  # otherwise it is anonymous
        type_, shape = cursor.type, []
        while True:
            for typedef in _typedefs(type_):
                self._refuse_errors_in(typedef)
            real = type_.get_canonical()
            if (kind := _type_kind(real)) not in _ARRAYS:
                break
            shape.append(real.element_count if kind == TypeKind.CONSTANTARRAY else 0)
            type_ = (type_ if _type_kind(type_) in _ARRAYS else real).element_type
        word = type_.spelling.replace("const ", "").replace("volatile ", "")
        if kind not in _KINDS:
            raise LayoutError(
                f"{_site(cursor)}: {name} has type {word}, which ARM programs do not support: use an integer or a "
                "float of fixed width, or an array of them."
            )
        nested = None
        if kind == TypeKind.RECORD:
            nested = self.described(real.get_declaration(), word)
            if "(" in word:  # anonymous: libclang puts its line there
                word = "union" if nested.is_union else "struct"
        is_signed = kind in _SIGNED if _KINDS[kind] == FieldKind.INTEGER else None
        first, size, bits = cursor.get_field_offsetof(), real.get_size(), None
        if cursor.is_bitfield():
            bits = Bits(first, cursor.get_bitfield_width())
            size = -(-(first % 8 + bits.width) // 8)
        return Field(
            name,
            word,
            _KINDS[kind],
            first // 8,
            size,
            is_signed,
            tuple(shape),
            bits,
            nested,
            _DSP_BYTES.get(kind),
            _site(cursor),
        )

    def _refuse_errors_in(self, declaration: Any) -> None:
        start, end = declaration.extent.start, declaration.extent.end
        for error in self._errors:
            if error.file == str(start.file) and start.line <= error.line <= end.line:
                raise LayoutError(f"{error}.{self._headers()}")

    def _reasons(self) -> str:
        """Return possible reasons for a missing declaration, as sentences with a leading space."""
        first = f" The first error: {self._errors[0]}." if self._errors else ""
        return first + self._headers()

    def _headers(self) -> str:
        if not self._missing:
            return ""
        return f" Missing headers: {', '.join(self._missing)}; give their directories with -I."


def _declared(scope: Any) -> Iterator[tuple[str, Any]]:
    """Yield the structs and unions of a scope: each name, tag or typedef, and the definition."""
    for cursor in scope.get_children():
        if cursor.kind in _RECORDS and cursor.is_definition() and cursor.spelling.isidentifier():
            yield cursor.spelling, cursor
        elif cursor.kind in _NAMES:
            record = cursor.underlying_typedef_type.get_canonical().get_declaration()
            if record.kind in _RECORDS and record.is_definition():
                yield cursor.spelling, record
        if cursor.kind in _SCOPES:
            yield from _declared(cursor)


def _typedefs(type_: Any) -> Iterator[Any]:
    """Yield the declarations of a type's names."""
    declaration = type_.get_declaration()
    while declaration.kind in _NAMES:
        yield declaration
        declaration = declaration.underlying_typedef_type.get_declaration()


def _type_kind(type_: Any) -> TypeKind | None:
    try:
        return type_.kind
    except ValueError:  # a kind unknown to libclang's Python bindings, such as _Float16
        return None


def _site(cursor: Any) -> str:
    return f"{cursor.location.file}:{cursor.location.line}"

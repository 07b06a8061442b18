"""Parse the text of an IDL file into constants, types and interfaces, with a grammar of the public language.

Source: qualcomm/fastrpc, IDL files and generated stubs, https://github.com/qualcomm/fastrpc
"""

from __future__ import annotations

import ctypes
import math
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from fastrpc.idl.model import (
    CHARACTER,
    WIDE_CHARACTER,
    Alias,
    Array,
    Constant,
    Enum,
    Field,
    File,
    Handle,
    IdlError,
    Interface,
    Operation,
    Parameter,
    Scalar,
    Sequence,
    String,
    Struct,
    Type,
    is_flat,
    is_simple,
    kind_of,
)
from fastrpc.idl.names import C_WORDS, python_name
from fastrpc.idl.preprocessor import Text, preprocess
from fastrpc.wire.aee import Aee, AeeError
from fastrpc.wire.marshal import IN, INROUT, MODES, Method, Record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lark import Lark, Token

MAX_STRUCT_BYTES: Final = 1 << 30
GRAMMAR: Final = r"""
start: (_definition | ";")*
_definition: module | interface | forward | _declaration
module: "module" NAME "{" _definition* "}" ";"
forward: "interface" NAME ";"
interface: "interface" NAME [":" named] "{" (_declaration | method)* "}" ";"
_declaration: constant | alias | enum | struct
constant: "const" _type NAME "=" _value ";"
_value: expression | TEXT
expression: (NUMBER | NAME | OPERATOR | PAREN | SIGN)+
PAREN: "(" | ")"
alias: "typedef" _type NAME dimensions ";"
enum: "enum" NAME "{" enumerator ("," enumerator)* ","? "}" ";"
enumerator: NAME ["=" expression]
struct: "struct" NAME "{" field+ "}" ";"
field: _type NAME dimensions ";"
dimensions: ("[" expression "]")*
method: [ASYNC] _type NAME "(" [parameter ("," parameter)*] ")" ";"
parameter: MODE _type NAME
_type: basic | sequence | string | named
basic: (UNSIGNED? (LONG LONG? | SHORT | CHAR)) | BASIC
sequence: "sequence" "<" _type ("," expression)? ">"
string: TEXT_TYPE ("<" expression ">")?
named: NAME ("::" NAME)*

MODE: /(inrout|rout|in|out)\b/
ASYNC.2: /async\b/
UNSIGNED: "unsigned"
LONG: "long"
SHORT: "short"
CHAR: "char"
TEXT_TYPE.2: /w?string\b/
BASIC.2: /(void|octet|byte|boolean|float|double|wchar|u?int(8|16|32|64)(_t)?|AEE(Result|UID|IID|CLSID|PRIVID)|AECHAR)\b/
NAME: /[A-Za-z_][A-Za-z0-9_]*/
NUMBER: /0[xX][0-9a-fA-F]+|[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?/
SIGN: "-" | "+"
OPERATOR: "*" | "/" | "|" | "&" | "^" | "~" | "<<" | ">>"
TEXT: /"(\\["abfnrtv\\]|[^"\\\n])*"/
%ignore /\s+/
%ignore /\/\/[^\n]*/
%ignore /\/\*(.|\n)*?\*\//
"""

_INTEGERS: Final = {
    bits: (Scalar(f"int{bits}{end}", signed), Scalar(f"uint{bits}{end}", unsigned))
    for bits, end, signed, unsigned in (
        (8, "_t", ctypes.c_int8, ctypes.c_uint8),
        (16, "_t", ctypes.c_int16, ctypes.c_uint16),
        (32, "_t", ctypes.c_int32, ctypes.c_uint32),
        (64, "", ctypes.c_int64, ctypes.c_uint64),  # from AEEStdDef.h
    )
}
_BASIC: Final = {
    "octet": _INTEGERS[8][1],
    "byte": _INTEGERS[8][1],
    "char": CHARACTER,
    "unsigned char": _INTEGERS[8][1],
    "wchar": WIDE_CHARACTER,
    "AECHAR": WIDE_CHARACTER,
    "boolean": Scalar("bool", ctypes.c_bool),
    "float": Scalar("float", ctypes.c_float),
    "double": Scalar("double", ctypes.c_double),
    "short": _INTEGERS[16][0],
    "unsigned short": _INTEGERS[16][1],
    "long": _INTEGERS[32][0],
    "unsigned long": _INTEGERS[32][1],
    "long long": _INTEGERS[64][0],
    "unsigned long long": _INTEGERS[64][1],
    "AEEResult": _INTEGERS[32][0],
    **dict.fromkeys(("AEEUID", "AEEIID", "AEECLSID", "AEEPRIVID"), _INTEGERS[32][1]),
    **{f"int{bits}{end}": pair[0] for bits, pair in _INTEGERS.items() for end in ("", "_t")},
    **{f"uint{bits}{end}": pair[1] for bits, pair in _INTEGERS.items() for end in ("", "_t")},
}
HANDLE: Final = "remote_handle64"
_OPEN_METHODS: Final = 2  # open and close of an interface with handles
_EXPRESSION: Final = re.compile(r"[-+*/|&^~<>()0-9a-fA-FxX. ]+")


def parse(text: str, file: str = "FILE.idl", folders: Iterable[Path] = ()) -> File:
    """What an IDL file declares.

    Args:
        text: The file's contents.
        file: Its name, for error messages and for resolving includes.
        folders: More folders to search for includes.

    Raises:
        IdlError: the file is not valid IDL, or uses features that the emulator does not support.
    """
    from lark import UnexpectedInput
    from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

    source = preprocess(text, file, folders)
    try:
        tree = _grammar().parse(source.text)
    except UnexpectedInput as error:
        found = "unexpected end of file"
        expected: set[str] = set()
        if isinstance(error, UnexpectedCharacters):
            found, expected = f"unexpected {error.char!r}", set(error.allowed or ())
        elif isinstance(error, UnexpectedToken):
            found = f"unexpected {str(error.token)!r}" if error.token.type != "$END" else found
            expected = set(error.accepts or error.expected)
        elif isinstance(error, UnexpectedEOF):
            expected = set(error.expected)
        line, column = (error.line, error.column) if error.line > 0 else _end_of(source.text)
        if isinstance(error, UnexpectedToken) and error.token.type == "$END":
            line, column = _end_of(source.text)
        raise IdlError(f"{_place(source, line)}:{column}: {found}; expected {_shown(expected)}.") from None
    try:
        return _Reader(file, source).read(tree)
    except RecursionError:
        raise IdlError(f"{file}:1:1: Modules, sequences or expressions are nested too deeply.") from None


@cache
def _grammar() -> Lark:
    from lark import Lark

    return Lark(GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def _end_of(text: str) -> tuple[int, int]:
    text = text.rstrip("\n")
    return text.count("\n") + 1, len(text) - text.rfind("\n")


def _place(source: Text, line: int) -> str:
    """The file and line of origin of a line of the text."""
    file, number = source.places[min(line, len(source.places)) - 1]
    return f"{file}:{number}"


def _shown(expected: set[str]) -> str:
    """Terminals of the grammar in words."""
    words = {
        "LBRACE": "{", "RBRACE": "}", "LPAR": "(", "RPAR": ")", "SEMICOLON": ";", "COMMA": ",", "COLON": ":",
        "EQUAL": "=", "LESSTHAN": "<", "MORETHAN": ">", "LSQB": "[", "RSQB": "]", "NAME": "a name",
        "NUMBER": "a number", "MODE": "in, rout or inrout", "BASIC": "a type", "TEXT": "a text", "$END": "the end",
    }  # fmt: skip
    return ", ".join(sorted({words.get(one, one.lower()) for one in expected if not one.startswith("__")}))


class _Reader:
    """Turns a tree into a file's declarations; checks names and types."""

    def __init__(self, file: str, source: Text) -> None:
        self._file, self._source = file, source
        self._scope: list[str] = []
        self._types: dict[str, Type] = {}  # by name in C
        self._constants: dict[str, Constant] = {}
        self._interfaces: dict[str, Interface] = {}
        self._numbers: dict[str, int] = {}  # integer constants and enumerators
        if "AEEStdErr.idl" in source.included:
            self._numbers |= {name: one.value for name, one in Aee.__members__.items()}
        self._names: set[str] = set()
        self._mine: list[tuple[str, Any]] = []  # declared by the file itself

    def read(self, tree: Any) -> File:
        """All declarations below a tree."""
        self._definitions(tree.children)
        if not self._names:
            raise IdlError(f"{self._file}:1:1: Nothing is declared; write interface NAME {{ ... }};.")
        files = {Path(file).stem: None for file, _ in self._source.places if file != self._file}
        return File(
            Path(self._file).stem,
            (*(["AEEStdErr"] if "AEEStdErr.idl" in self._source.included else []), *files),
            tuple(one for _, one in self._mine if isinstance(one, Constant)),
            tuple(one for _, one in self._mine if not isinstance(one, Constant | Interface)),
            tuple(one for _, one in self._mine if isinstance(one, Interface)),
            tuple(self._source.notes),
        )

    def _definitions(self, nodes: list[Any]) -> None:
        for node in nodes:
            if node.data == "module":
                self._scope.append(str(node.children[0]))
                self._definitions(node.children[1:])
                self._scope.pop()
            else:
                getattr(self, f"_{node.data}")(node)

    def _forward(self, node: Any) -> None:
        """A forward declaration of an interface: nothing to do yet."""

    def _interface(self, node: Any) -> None:
        name, base, *members = node.children
        c = self._c(name)
        if str(name) == HANDLE:
            return  # from a copy of remote.idl
        self._new(name, c)
        operations, has_handle = self._inherited(base)
        taken = {one.name for one in operations} | ({"open", "close"} if has_handle else set())
        number = len(operations) + _OPEN_METHODS * has_handle
        self._scope.append(str(name))
        for member in members:
            if member.data != "method":
                getattr(self, f"_{member.data}")(member)
                continue
            made = self._method(member, number)
            if made.name in taken:
                why = "which the interface has from remote_handle64" if made.name in {"open", "close"} else "twice"
                self._fail(member.children[2], f"The method {made.name} is declared {why}.")
            taken.add(made.name)
            operations.append(made)
            number += 1
        self._scope.pop()
        handle = f"_const_{c}_handle"
        static = self._constants[handle].text if handle in self._constants else None
        self._keep(name, self._interfaces, c, Interface(c, has_handle, tuple(operations), static))

    def _inherited(self, named: Any) -> tuple[list[Operation], bool]:
        """The methods that an interface inherits, and whether it has handles."""
        base = "" if named is None else "_".join(map(str, named.children))
        if base in {"", HANDLE}:
            return [], bool(base)
        found = self._lookup(base, self._interfaces)
        if found is None:
            self._fail(named.children[0], f"Unknown interface {base}; it must be declared before use, or be {HANDLE}.")
        return [*found.operations], found.has_handle

    def _method(self, node: Any, number: int) -> Operation:
        is_async, returned, name, *nodes = node.children
        self._check_word(name)
        returns = None
        if returned.data != "basic" or str(returned.children[0]) != "void":
            kind = self._type(returned)
            if not isinstance(kind, Scalar | Enum) or kind.kind not in {ctypes.c_int32, ctypes.c_uint32}:
                self._fail(name, f"{name} returns {returned.children[0]}: a method must return a 32-bit code, or void.")
            returns = kind
        names: set[str] = set()
        parameters = tuple(self._parameter(one, names) for one in nodes if one is not None)
        try:
            method = Method(python_name(str(name)), number, *(one.param(python_name(one.name)) for one in parameters))
        except AeeError as error:
            self._fail(name, f"{name}: {error.sentence}")
        if is_async and (method.has_parts or method.output.size_bytes or any(map(_is_read_back, parameters))):
            why = "its outputs are sequences of values, and its inputs in one piece, because no stub waits for them"
            self._fail(name, f"{name} is async: {why}.")
        return Operation(str(name), number, returns, parameters, method, is_async is not None)

    def _parameter(self, node: Any, names: set[str]) -> Parameter:
        mode, kind, name = node.children
        if str(mode) not in MODES:
            self._fail(mode, f"Invalid mode {mode}: must be in, rout or inrout.")
        self._check_word(name)
        found = self._type(kind)
        if str(name) in self._types or str(name) in self._constants:
            self._fail(name, f"{name} is a type or a constant of this file; C has one name for both.")
        ends = ["Len"] if isinstance(found, Sequence | String) else []
        if isinstance(found, Handle) and found.is_memory:
            ends = ["Offset", "Len"]
        for one in (str(name), *(f"{name}{end}" for end in ends)):
            if one in names:
                self._fail(name, f"Two parameters have the name {one}; a sequence has NAMELen, too.")
            names.add(one)
        if str(mode) == INROUT and (not is_simple(found) or isinstance(found, String | Handle)):
            what = "A string" if isinstance(found, String) else "A parameter in parts"
            self._fail(mode, f"{what} must be in or rout; pass a sequence of numbers for both.")
        if isinstance(found, Handle) and found.is_memory and str(mode) != IN:
            self._fail(mode, f"{name} is a dmahandle, which must be in.")
        return Parameter(str(name), str(mode), found)

    def _constant(self, node: Any) -> None:
        _, name, value = node.children
        c = self._c(name)
        text = str(value) if not hasattr(value, "data") else self._text_of(value)
        self._new(name, c)
        self._keep(name, self._constants, c, Constant(c, text))
        with suppress(ValueError):  # a string, or a number with a fraction
            self._numbers[c] = int(text, 0)

    def _alias(self, node: Any) -> None:
        kind, name, dimensions = node.children
        found = self._type(kind)
        c = self._c(name)
        lengths = self._lengths(dimensions)
        self._new(name, c)
        if lengths:
            if not is_flat(found):
                self._fail(name, f"The array {name} has elements without a fixed size.")
            made = Array(c, found, lengths, _array_kind(found.kind, lengths))  # type: ignore[arg-type, union-attr]
            self._keep(name, self._types, c, made)
        elif isinstance(found, Sequence):
            self._keep(name, self._types, c, Sequence(found.element, c))
        else:
            self._types[c] = found
            if isinstance(found, Scalar | Enum | Struct):
                self._types[c] = found._replace(c=c) if isinstance(found, Scalar) else found
                self._note(name, Alias(c, found))

    def _enum(self, node: Any) -> None:
        name, *rows = node.children
        c = self._c(name)
        self._new(name, c)
        values: list[tuple[str, int]] = []
        for row in rows:
            one, given = row.children
            self._new(one, str(one))
            number = values[-1][1] + 1 if given is None and values else 0 if given is None else self._integer(given)
            values.append((str(one), number))
            self._numbers[str(one)] = number
        self._keep(name, self._types, c, Enum(c, tuple(values)))

    def _struct(self, node: Any) -> None:
        name, *rows = node.children
        c = self._c(name)
        self._new(name, c)
        fields: list[Field] = []
        for row in rows:
            kind, one, dimensions = row.children
            found = self._type(kind)
            self._check_word(one)
            if str(one) in self._constants:
                self._fail(one, f"{one} is a type or a constant of this file; C has one name for both.")
            lengths = self._lengths(dimensions)
            if isinstance(found, Handle) or (lengths and not is_flat(found)):
                self._fail(one, f"The field {one} has no fixed size: arrays hold numbers and structures of them.")
            taken = {f"{each.name}{end}" for each in fields for end in ("", *_ends(each.type))}
            if any(f"{one}{end}" in taken for end in ("", *_ends(found))):
                self._fail(one, f"The field {one} is declared twice.")
            fields.append(Field(str(one), found, lengths))
        is_whole = all(is_flat(one.type) for one in fields)
        kinds = [kind_of(one.type) for one in fields]
        if is_whole:
            size_bytes = sum(
                ctypes.sizeof(cast("type[Any]", each)) * math.prod(one.lengths)
                for one, each in zip(fields, kinds, strict=True)
            )
            if size_bytes > MAX_STRUCT_BYTES:
                self._fail(name, f"{name} has {size_bytes} bytes; a structure has at most {MAX_STRUCT_BYTES}.")
        rows = tuple((one.name, _array_kind(each, one.lengths)) for one, each in zip(fields, kinds, strict=True))
        base, table = (ctypes.Structure, "_fields_") if is_whole else (Record, "FIELDS")
        made: type[Any] = type(c, (base,), {table: rows})
        self._keep(name, self._types, c, Struct(c, tuple(fields), made))

    def _type(self, node: Any) -> Type:
        if node.data == "basic":
            words = " ".join(map(str, node.children))
            if words == "void":
                self._fail_at(node, "void is a return type, not the type of a value.")
            return _BASIC[words]
        if node.data == "string":
            return String(str(node.children[0]) == "wstring")
        if node.data == "sequence":
            element = self._type(node.children[0])
            if isinstance(element, Handle):
                self._fail_at(node, "A sequence must not contain handles.")
            if isinstance(element, Sequence) and not element.c:
                self._fail_at(node, "A sequence of sequences needs a typedef for the inner one, which gives it a name.")
            return Sequence(element)
        name = "_".join(map(str, node.children))
        if name in {"dmahandle", HANDLE} or self._lookup(name, self._interfaces) is not None:
            return Handle(name == "dmahandle")
        found: Type | None = self._lookup(name, self._types)
        if found is None:
            self._fail(node.children[0], f"Unknown type {name}; it must be declared before use.")
        return found

    def _lookup(self, name: str, table: dict[str, Any]) -> Any:
        """Resolve a name in the innermost scope that has it."""
        for depth in range(len(self._scope), -1, -1):
            found = table.get("_".join([*self._scope[:depth], name]))
            if found is not None:
                return found
        return None

    def _text_of(self, node: Any) -> str:
        """The value of a constant, as both languages write it."""
        tokens = [str(one) for one in node.children]
        if len(tokens) == 1 and tokens[0].upper() in {"TRUE", "FALSE"}:
            return str(int(tokens[0].upper() == "TRUE"))
        text = "".join(tokens)
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|[1-9][0-9]*|0|[0-9]+(\.[0-9]+|(\.[0-9]+)?[eE][-+]?[0-9]+))", text):
            return text
        return str(self._integer(node, bits=64))

    def _integer(self, node: Any, bits: int = 32) -> int:
        """The integer value of an expression."""
        words = []
        for token in node.children:
            number = self._lookup(str(token), self._numbers) if token.type == "NAME" else None
            if token.type == "NAME" and number is None:
                self._fail(token, f"Unknown constant {token}; it must be declared before use.")
            if re.fullmatch("0[0-7]+", token):  # octal, in C
                number = int(token, 8)
            words.append(str(token) if number is None else f"({number})")
        text = " ".join(words).replace("/", "//")
        number = _evaluated(text)
        if number is None:
            self._fail_at(node, f"{''.join(map(str, node.children))} is not an integer.")
        if not -(1 << bits - 1) <= number < 1 << bits:
            self._fail_at(node, f"{number} does not fit {bits} bits.")
        return number - (1 << 32) if bits == 32 and number >= 1 << 31 else number

    def _lengths(self, node: Any) -> tuple[int, ...]:
        lengths = []
        for one in node.children:
            number = self._integer(one)
            if not 0 < number < 1 << 20:
                self._fail_at(one, f"An array must have 1 to {(1 << 20) - 1} elements, got {number}.")
            lengths.append(number)
        return tuple(lengths)

    def _c(self, token: Token) -> str:
        return "_".join([*self._scope, str(token)])

    def _new(self, token: Token, c: str) -> None:
        self._check_word(token)
        if c in self._names:
            self._fail(token, f"{c} is declared twice.")
        self._names.add(c)

    def _keep(self, token: Token, table: dict[str, Any], c: str, made: Any) -> None:
        table[c] = made
        self._note(token, made)

    def _note(self, token: Token, made: Any) -> None:
        file, _ = self._source.places[(token.line or 1) - 1]
        if file == self._file:
            self._mine.append((file, made))

    def _check_word(self, token: Token) -> None:
        if str(token) in C_WORDS:
            self._fail(token, f"{token} is not a valid name: it is a keyword of C.")

    def _fail(self, token: Token, sentence: str) -> NoReturn:
        raise IdlError(f"{_place(self._source, token.line or 1)}:{token.column}: {sentence}")

    def _fail_at(self, node: Any, sentence: str) -> NoReturn:
        raise IdlError(f"{_place(self._source, node.meta.line)}:{node.meta.column}: {sentence}")


def _evaluated(text: str) -> int | None:
    """The integer value of an expression of numbers and operators; None if it has none or it is too large."""
    if not _EXPRESSION.fullmatch(text) or "**" in text.replace(" ", "") or re.search(r"<\s*<[\s(]*\d{3}", text):
        return None
    try:
        number = eval(compile(text, "", "eval"), {"__builtins__": {}})  # noqa: S307 - only numbers and operators
    except (ValueError, SyntaxError, TypeError, ArithmeticError, MemoryError, RecursionError):
        return None
    return number if isinstance(number, int) else None


def _is_read_back(one: Parameter) -> bool:
    """Whether a stub does something to an output after the call."""
    return one.is_out and not isinstance(one.type, Sequence)


def _ends(kind: Type) -> tuple[str, ...]:
    return ("Len",) if isinstance(kind, Sequence | String) else ()


def _array_kind(kind: Any, lengths: tuple[int, ...]) -> Any:
    for length in reversed(lengths):
        kind = kind * length
    return kind

"""The text of an IDL file as interfaces, by a grammar of the public language's part that the emulator serves.

Source: qualcomm/fastrpc, generated stubs, https://github.com/qualcomm/fastrpc
"""

from __future__ import annotations

import ctypes
import keyword
import re
from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

from hbrt.fastrpc.aee import AeeError
from hbrt.fastrpc.marshal import INROUT, MODES, SEQUENCE, STRING, VALUE, Method, Param
from hbrt.idl.model import (
    Constant,
    Enum,
    Field,
    IdlError,
    Interface,
    Operation,
    Parameter,
    Scalar,
    Sequence,
    String,
    Struct,
)

if TYPE_CHECKING:
    from lark import Lark, Token

GRAMMAR: Final = r"""
start: _definition*
_definition: module | interface | _declaration
module: "module" NAME "{" _definition* "}" ";"
interface: "interface" NAME [":" NAME] "{" (_declaration | method)* "}" ";"
_declaration: constant | alias | enum | struct
constant: "const" _type NAME "=" (NUMBER | TEXT) ";"
alias: "typedef" _type NAME ";"
enum: "enum" NAME "{" enumerator ("," enumerator)* ","? "}" ";"
enumerator: NAME ["=" NUMBER]
struct: "struct" NAME "{" field+ "}" ";"
field: _type NAME ["[" (NUMBER | NAME) "]"] ";"
method: _type NAME "(" [parameter ("," parameter)*] ")" ";"
parameter: MODE _type NAME
_type: basic | sequence | string | named
basic: (UNSIGNED? (LONG LONG? | SHORT | CHAR)) | BASIC
sequence: "sequence" "<" _type ">"
string: "string"
named: NAME

MODE: /(inrout|rout|in|out)\b/
UNSIGNED: "unsigned"
LONG: "long"
SHORT: "short"
CHAR: "char"
BASIC.2: /(octet|boolean|float|double|u?int(8|16|32|64)(_t)?|AEEResult)\b/
NAME: /[A-Za-z_][A-Za-z0-9_]*/
NUMBER: /-?(0[xX][0-9a-fA-F]+|[0-9]+(\.[0-9]+)?)/
TEXT: /"[^"\n]*"/
%ignore /\s+/
%ignore /\/\/[^\n]*/
%ignore /\/\*(.|\n)*?\*\//
%ignore /#[^\n]*/
"""

_INTEGERS: Final = {
    bits: (Scalar(f"int{bits}_t", signed), Scalar(f"uint{bits}_t", unsigned))
    for bits, signed, unsigned in (
        (8, ctypes.c_int8, ctypes.c_uint8),
        (16, ctypes.c_int16, ctypes.c_uint16),
        (32, ctypes.c_int32, ctypes.c_uint32),
        (64, ctypes.c_int64, ctypes.c_uint64),
    )
}
_BASIC: Final = {
    "octet": _INTEGERS[8][1],
    "char": Scalar("char", ctypes.c_int8),
    "unsigned char": _INTEGERS[8][1],
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
    **{f"int{bits}{end}": pair[0] for bits, pair in _INTEGERS.items() for end in ("", "_t")},
    **{f"uint{bits}{end}": pair[1] for bits, pair in _INTEGERS.items() for end in ("", "_t")},
}
HANDLE: Final = "remote_handle64"
_KNOWN_FILES: Final = {"AEEStdDef.idl", "remote.idl"}
_INCLUDE: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]*)', re.MULTILINE)
_C_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "auto bool break case char const continue default do double else enum extern float for goto if inline int long "
        "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
        "class delete new operator private protected public template this throw try virtual namespace using "
        "memcpy memset strlen remote_arg remote_handle64 size_t int32_t uint32_t NULL INT32_MAX AEE_EBADPARM",
    )
)
"""Words of the languages, and what generated functions use."""
_TAKEN: Final = frozenset(
    {"open", "close", "call", "invoke", "register", "handle", "uri", "skel_handle_invoke", "INTERFACE", "METHODS"}
)
"""Names of the runtime's own beside the methods of an interface."""

_Type = Scalar | Enum | Struct | Sequence | String


def parse(text: str, file: str = "FILE.idl") -> list[Interface]:
    """The interfaces of an IDL file.

    Args:
        text: What the file holds.
        file: Its name, for errors.

    Raises:
        IdlError: it is no IDL, or uses what the emulator does not serve.
    """
    from lark import UnexpectedInput
    from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

    for include in _INCLUDE.finditer(text):
        if include[1] not in _KNOWN_FILES:
            line = text.count("\n", 0, include.start()) + 1
            raise IdlError(
                f"{file}:{line}:1: The file {include[1]} is not read: put what it declares into this file. Known are "
                f"{' and '.join(sorted(_KNOWN_FILES))}."
            )
    try:
        tree = _grammar().parse(text)
    except UnexpectedInput as error:
        found = "the file ends here"
        expected: set[str] = set()
        if isinstance(error, UnexpectedCharacters):
            found, expected = f"{error.char!r} stands here", set(error.allowed or ())
        elif isinstance(error, UnexpectedToken):
            found = f"{str(error.token)!r} stands here" if error.token.type != "$END" else found
            expected = set(error.accepts or error.expected)
        elif isinstance(error, UnexpectedEOF):
            expected = set(error.expected)
        line, column = (error.line, error.column) if error.line > 0 else _end_of(text)
        if isinstance(error, UnexpectedToken) and error.token.type == "$END":
            line, column = _end_of(text)
        raise IdlError(f"{file}:{line}:{column}: {found}; expected {_shown(expected)}.") from None
    return _Reader(file).read(tree)


@cache
def _grammar() -> Lark:
    from lark import Lark

    return Lark(GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def _end_of(text: str) -> tuple[int, int]:
    return text.count("\n") + 1, len(text) - text.rfind("\n")


def _shown(expected: set[str]) -> str:
    """Terminals of the grammar in words."""
    words = {
        "LBRACE": "{", "RBRACE": "}", "LPAR": "(", "RPAR": ")", "SEMICOLON": ";", "COMMA": ",", "COLON": ":",
        "EQUAL": "=", "LESSTHAN": "<", "MORETHAN": ">", "LSQB": "[", "RSQB": "]", "NAME": "a name",
        "NUMBER": "a number", "MODE": "in, rout or inrout", "BASIC": "a type", "TEXT": "a text", "$END": "the end",
    }  # fmt: skip
    return ", ".join(sorted({words.get(one, one.lower()) for one in expected if not one.startswith("__")}))


class _Reader:
    """Turns a tree into interfaces; checks names and types."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._types: dict[str, _Type] = {}
        self._constants: dict[str, Constant] = {}
        self._interfaces: list[Interface] = []
        self._names: set[str] = set()

    def read(self, tree: Any) -> list[Interface]:
        """All interfaces below a tree."""
        self._definitions(tree.children)
        if not self._interfaces:
            raise IdlError(f"{self._file}:1:1: No interface is declared; write interface NAME {{ ... }};.")
        return self._interfaces

    def _definitions(self, nodes: list[Any]) -> None:
        for node in nodes:
            if node.data == "module":
                self._definitions(node.children[1:])
            else:
                getattr(self, f"_{node.data}")(node)

    def _interface(self, node: Any) -> None:
        name, base, *members = node.children
        self._new(name)
        if base is not None and str(base) != HANDLE:
            self._fail(base, f"An interface derives from {HANDLE} or from nothing, not from {base}.")
        number = 2 if base is not None else 0
        operations: list[Operation] = []
        taken: set[str] = set()
        for member in members:
            if member.data != "method":
                getattr(self, f"_{member.data}")(member)
                continue
            made = self._method(member, number)
            if made.name in taken:
                self._fail(member.children[1], f"The method {made.name} is declared twice.")
            taken.add(made.name)
            operations.append(made)
            number += 1
        types = tuple(one for one in self._types.values() if isinstance(one, Enum | Struct))
        unique = tuple(dict.fromkeys(types))
        self._interfaces.append(
            Interface(str(name), base is not None, tuple(operations), tuple(self._constants.values()), unique)
        )

    def _method(self, node: Any, number: int) -> Operation:
        returned, name, *nodes = node.children
        if self._type(returned) != _BASIC["long"]:
            self._fail(name, f"{name} does not return long: a method returns a code, 0 for success.")
        self._check_word(name)
        if str(name) in _TAKEN:
            self._fail(name, f"A method cannot be named {name}, which the runtime has itself.")
        names: set[str] = set()
        parameters = [self._parameter(one, names) for one in nodes if one is not None]
        try:
            method = Method(str(name), number, *(one.param for one in parameters))
        except AeeError as error:
            self._fail(name, f"{name}: {error.sentence}")
        return Operation(method, tuple(parameters))

    def _parameter(self, node: Any, names: set[str]) -> Parameter:
        mode, kind, name = node.children
        if str(mode) not in MODES:
            self._fail(mode, f"A parameter is in, rout or inrout, not {mode}.")
        self._check_word(name)
        self._check_hidden(name, self._types, self._constants)
        found = self._type(kind)
        for one in (str(name), *([f"{name}Len"] if isinstance(found, Sequence | String) else [])):
            if one in names:
                self._fail(name, f"Two parameters have the name {one}; a sequence has NAMELen, too.")
            names.add(one)
        if isinstance(found, String):
            if str(mode) == INROUT:
                self._fail(mode, "A string is in or rout; pass sequence<char> for one that is both.")
            return Parameter(Param(str(name), str(mode), STRING), None)
        if isinstance(found, Sequence):
            return Parameter(Param(str(name), str(mode), SEQUENCE, found.element.kind), found.element)
        return Parameter(Param(str(name), str(mode), VALUE, found.kind), found)

    def _constant(self, node: Any) -> None:
        _, name, value = node.children
        self._new(name)
        self._constants[str(name)] = Constant(str(name), str(value))

    def _alias(self, node: Any) -> None:
        kind, name = node.children
        found = self._type(kind)
        self._new(name)
        self._types[str(name)] = found

    def _enum(self, node: Any) -> None:
        name, *rows = node.children
        self._new(name)
        values: list[tuple[str, int]] = []
        for row in rows:
            one, given = row.children
            self._new(one)
            number = values[-1][1] + 1 if given is None and values else 0 if given is None else self._integer(given)
            values.append((str(one), number))
        self._types[str(name)] = Enum(str(name), tuple(values))

    def _struct(self, node: Any) -> None:
        name, *rows = node.children
        self._new(name)
        fields: list[Field] = []
        for row in rows:
            kind, one, count = row.children
            found = self._type(kind)
            self._check_word(one)
            self._check_hidden(one, self._constants)
            if isinstance(found, Sequence | String):
                self._fail(one, f"The field {one} has no fixed size: structures hold numbers, arrays and structures.")
            if any(field.name == str(one) for field in fields):
                self._fail(one, f"The field {one} is declared twice.")
            fields.append(Field(str(one), found, 0 if count is None else self._count(count)))
        layout = [(one.name, one.type.kind * one.length if one.length else one.type.kind) for one in fields]
        kind = type(str(name), (ctypes.Structure,), {"_fields_": layout})
        self._types[str(name)] = Struct(str(name), tuple(fields), kind)

    def _type(self, node: Any) -> _Type:
        if node.data == "basic":
            words = " ".join(map(str, node.children))
            return _BASIC[words]
        if node.data == "string":
            return String()
        if node.data == "sequence":
            element = self._type(node.children[0])
            if isinstance(element, Sequence | String):
                self._fail_at(node, "A sequence holds numbers or structures; pass one sequence and offsets.")
            return Sequence(element)
        name = node.children[0]
        if str(name) not in self._types:
            self._fail(name, f"There is no type {name}; it must be declared before.")
        return self._types[str(name)]

    def _integer(self, token: Token) -> int:
        try:
            number = int(token, 0)
        except ValueError:
            self._fail(token, f"{token} is no whole number.")
        if not -(1 << 31) <= number < 1 << 31:
            self._fail(token, f"{token} does not fit 32 bits.")
        return number

    def _count(self, token: Token) -> int:
        constant = self._constants.get(str(token))
        if token.type == "NAME" and constant is None:
            self._fail(token, f"There is no constant {token}; it must be declared before.")
        try:
            number = int(constant.text if constant is not None else token, 0)
        except ValueError:
            number = 0
        if not 0 < number < 1 << 20:
            self._fail(token, f"An array has 1 to {(1 << 20) - 1} elements, not {token}.")
        return number

    def _new(self, token: Token) -> None:
        self._check_word(token)
        if str(token) in self._names:
            self._fail(token, f"{token} is declared twice; names are those of the whole file.")
        self._names.add(str(token))

    def _check_word(self, token: Token) -> None:
        if keyword.iskeyword(str(token)) or str(token) in _C_WORDS or token.startswith("_") or str(token) == "self":
            self._fail(
                token,
                f"{token} is no name for C and Python: it is a word of one of them, is used by what is generated, or "
                "begins with _.",
            )

    def _check_hidden(self, token: Token, *declared: Collection[str]) -> None:
        """Refuse what would hide a type or a constant from C, which is a macro there."""
        if any(token in names for names in declared):
            self._fail(token, f"{token} is a type or a constant of this file; C has one name for both.")

    def _fail(self, token: Token, sentence: str) -> NoReturn:
        raise IdlError(f"{self._file}:{token.line}:{token.column}: {sentence}")

    def _fail_at(self, node: Any, sentence: str) -> NoReturn:
        raise IdlError(f"{self._file}:{node.meta.line}:{node.meta.column}: {sentence}")

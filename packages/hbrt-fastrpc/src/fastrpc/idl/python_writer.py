"""A file of interfaces in Python: types and methods, stubs for programs, skeletons for images. Pure."""

from __future__ import annotations

import ctypes
import re
from typing import Final, cast

from fastrpc.idl.model import (
    Array,
    Enum,
    Field,
    File,
    Handle,
    Operation,
    Parameter,
    Scalar,
    Sequence,
    String,
    Struct,
    Type,
    is_flat,
    is_simple,
)
from fastrpc.idl.names import NOTE, class_name, identifier, python_name

_NAMES: Final = {
    getattr(ctypes, name): name
    for name in (
        *("c_bool", "c_float", "c_double"),
        *(f"c_{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    )
}


def files(file: File) -> dict[str, str]:
    """The text of each file, by name."""
    name = identifier(file.name)
    made = {f"{name}_idl.py": _shared(file)}
    if file.interfaces:
        made |= {f"{name}_stub.py": _stub(file), f"{name}_skel.py": _skeleton(file)}
    if len(file.interfaces) == 1:
        text = f'"""{NOTE}"""\n\nfrom {name}{{}} import *  # noqa: F403\n'
        made = {f"{file.interfaces[0].c}{end}.py": text.format(end) for end in ("_idl", "_stub", "_skel")} | made
    return made


def _shared(file: File) -> str:
    lines = [
        f'"""What {file.name}.idl declares: its constants, types and methods. {NOTE}"""',
        "",
        "import ctypes as _ctypes",
        "import enum as _enum",
        "",
        "from fastrpc.wire import marshal as _marshal",
        *(f"from {identifier(one)}_idl import *  # noqa: F403" for one in file.includes if one != "AEEStdErr"),
        "",
        *(f"{one.name} = {one.text}" for one in file.constants),
    ]
    for one in file.types:
        if isinstance(one, Enum):
            lines += _enum(one)
        elif isinstance(one, Struct):
            lines += _structure(one)
    for interface in file.interfaces:
        for operation in interface.operations:
            params = "".join(f"    {_param(one)},\n" for one in operation.parameters)
            start = f"{_constant(interface.c, operation)} = _marshal.Method("
            lines += ["", f'{start}\n    "{python_name(operation.name)}",\n    {operation.number},\n{params})']
        table = "".join(f"    {one.number}: {_constant(interface.c, one)},\n" for one in interface.operations)
        lines += ["", f"METHODS_{interface.c} = {{\n{table}}}", ""]
    return re.sub("\n{4,}", "\n\n\n", "\n".join([*lines, ""]))


def _enum(one: Enum) -> list[str]:
    rows = [f"    {name} = {value}" for name, value in one.values]
    return ["", "", f"class {one.c}(_enum.IntEnum):", f'    """{one.c}."""', "", *rows, ""]


def _structure(one: Struct) -> list[str]:
    rows = [f'        ("{field.name}", {_field_kind(field)}),' for field in one.fields]
    base, table = ("_ctypes.Structure", "_fields_") if is_flat(one) else ("_marshal.Record", "FIELDS")
    head = ["", "", f"class {one.c}({base}):", f'    """{one.c}."""', "", f"    {table} = ("]
    return [*head, *rows, "    )", ""]


def _field_kind(field: Field) -> str:
    return _dimensioned(_kind(field.type), field.lengths)


def _dimensioned(kind: str, lengths: tuple[int, ...]) -> str:
    for length in reversed(lengths):
        kind = f"({kind} * {length})"
    return kind


def _kind(one: Type) -> str:
    if isinstance(one, Array):
        return _dimensioned(_kind(one.element), one.lengths)
    if isinstance(one, Sequence):
        return f"_marshal.SequenceOf({_kind(one.element)})"
    if isinstance(one, String):
        return f"_marshal.SequenceOf({_kind(one.character) if one.is_wide else '_ctypes.c_char'})"
    return one.c if isinstance(one, Struct) else f"_ctypes.{_NAMES[cast('Scalar | Enum', one).kind]}"


def _param(one: Parameter) -> str:
    name = python_name(one.name)
    form = one.param(name).form.upper()
    value = None if isinstance(one.type, Handle) else one.value if is_simple(one.type) else one.type
    kind = "" if value is None else f", {_kind(value)}"
    return f'_marshal.Param("{name}", _marshal.{one.mode.upper()}, _marshal.{form}{kind})'


def _constant(interface: str, operation: Operation) -> str:
    """The name of a method's description; it must not be the name of a type or constant."""
    return f"METHOD_{interface}_{operation.name}"


def _results(operation: Operation) -> list[Parameter]:
    return [one for one in operation.parameters if one.is_out and (_is_value(one) or _is_text(one))]


def _is_text(one: Parameter) -> bool:
    return isinstance(one.type, String) and not one.type.is_wide


def _is_value(one: Parameter) -> bool:
    return is_flat(one.type) or isinstance(one.type, Handle)


def _stub(file: File) -> str:
    lines = [
        f'"""The stubs of {file.name}.idl, for programs. {NOTE}"""',
        "",
        "from typing import Any as _Any",
        "",
        f"import {identifier(file.name)}_idl as _idl",
        "from fastrpc import Interface as _Interface",
    ]
    for interface in file.interfaces:
        lines += [
            "",
            "",
            f"class {class_name(interface.c)}(_Interface):",
            f'    """An open {interface.c}; methods raise AeeError."""',
            "",
            f'    INTERFACE = "{interface.c}"',
        ]
        if interface.c != file.name:
            lines.append(f'    LIBRARY = "{file.name}"')
        if interface.has_handle and file.version:
            lines.append(f'    VERSION = "{file.version}"')
        for one in interface.operations:
            given = [each for each in one.parameters if each.is_in or not _is_value(each)]
            parameters = "".join(f", {python_name(each.name)}: {_given_type(each)}" for each in given)
            arguments = "".join(f", {python_name(each.name)}" for each in given)
            lines += [
                "",
                f"    def {python_name(one.name)}(self{parameters}) -> _Any:",
                f'        """Method {one.number}{_told(one)}."""',
                f"        return self.call(_idl.{_constant(interface.c, one)}{arguments})",
            ]
    return "\n".join([*lines, ""])


def _given_type(one: Parameter) -> str:
    if _is_text(one):
        return "int" if one.is_out else "str"
    return "float" if _is_value(one) and _is_float(one) else "int" if _is_integer(one) else "_Any"


def _is_float(one: Parameter) -> bool:
    return isinstance(one.type, Scalar) and one.type.kind in {ctypes.c_float, ctypes.c_double}


def _is_integer(one: Parameter) -> bool:
    return isinstance(one.type, Scalar | Enum)


def _told(operation: Operation) -> str:
    told = [one.name for one in operation.parameters if one.is_out and (_is_value(one) or not one.is_in)]
    return f"; returns {', '.join(told)}" if told else ""


def _skeleton(file: File) -> str:
    lines = [
        f'"""The skeletons of {file.name}.idl, for images: derive from them, call register() in main(). {NOTE}"""',
        "",
        "from typing import Any as _Any",
        "",
        f"import {identifier(file.name)}_idl as _idl",
        "from dsp_server.fastrpc import Skeleton as _Skeleton",
    ]
    for interface in file.interfaces:
        lines += [
            "",
            "",
            f"class {class_name(interface.c)}Skel(_Skeleton):",
            f'    """An object of {interface.c}; methods raise AeeError to fail."""',
            "",
            f'    INTERFACE = "{interface.c}"',
            f"    METHODS = _idl.METHODS_{interface.c}",
            *([f'    VERSION = "{file.version}"'] if interface.has_handle and file.version else []),
        ]
        for one in interface.operations:
            given = [each for each in one.parameters if each.is_in or not (_is_value(each) or _is_text(each))]
            parameters = "".join(f", {python_name(each.name)}: _Any" for each in given)
            told = ", ".join(each.name for each in _results(one))
            lines += [
                "",
                f"    def {python_name(one.name)}(self{parameters}) -> _Any:",
                f'        """Method {one.number}; returns {told or "None"}."""',
                "        raise NotImplementedError",
            ]
    return "\n".join([*lines, ""])

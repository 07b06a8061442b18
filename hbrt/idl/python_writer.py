"""An interface in Python: its types and methods, a stub for programs, a skeleton for images. Pure."""

from __future__ import annotations

import ctypes
import re
from typing import Final

from hbrt.fastrpc.marshal import SEQUENCE, STRING, VALUE
from hbrt.idl.model import Enum, Field, Interface, Operation, Parameter, Scalar, Struct

NOTE: Final = "Written by hbrt idl: change the IDL file instead."

_NAMES: Final = {
    getattr(ctypes, name): name
    for name in (
        *("c_bool", "c_float", "c_double"),
        *(f"c_{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    )
}


def files(interface: Interface) -> dict[str, str]:
    """The text of each file, by its name."""
    name = interface.name
    return {
        f"{name}_idl.py": _shared(interface),
        f"{name}_stub.py": _stub(interface),
        f"{name}_skel.py": _skeleton(interface),
    }


def class_name(name: str) -> str:
    """The name of an interface's class: ``my_calc`` is MyCalc."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _shared(interface: Interface) -> str:
    lines = [
        f'"""The interface {interface.name}: its constants, types and methods. {NOTE}"""',
        "",
        "import ctypes as _ctypes",
        "import enum as _enum",
        "",
        "from hbrt.fastrpc import marshal as _marshal",
        "",
        *(f"{one.name} = {one.text}" for one in interface.constants),
    ]
    for one in interface.types:
        lines += _enum(one) if isinstance(one, Enum) else _structure(one)
    for operation in interface.operations:
        params = "".join(f"    {_param(one)},\n" for one in operation.parameters)
        start = f"{_constant(operation)} = _marshal.Method("
        head = f'{start}\n    "{operation.name}",\n    {operation.method.number},\n{params})'
        lines += ["", head]
    table = "".join(f"    {one.method.number}: {_constant(one)},\n" for one in interface.operations)
    lines += ["", f"METHODS = {{\n{table}}}", ""]
    return re.sub("\n{4,}", "\n\n\n", "\n".join(lines))


def _enum(one: Enum) -> list[str]:
    rows = [f"    {name} = {value}" for name, value in one.values]
    return ["", "", f"class {one.name}(_enum.IntEnum):", f'    """{one.name}."""', "", *rows, ""]


def _structure(one: Struct) -> list[str]:
    rows = [f'        ("{field.name}", {_field_kind(field)}),' for field in one.fields]
    head = ["", "", f"class {one.name}(_ctypes.Structure):", f'    """{one.name}."""', "", "    _fields_ = ("]
    return [*head, *rows, "    )", ""]


def _field_kind(field: Field) -> str:
    kind = _kind(field.type)
    return f"{kind} * {field.length}" if field.length else kind


def _kind(one: Scalar | Enum | Struct) -> str:
    return one.name if isinstance(one, Struct) else f"_ctypes.{_NAMES[one.kind]}"


def _param(one: Parameter) -> str:
    form = {VALUE: "VALUE", SEQUENCE: "SEQUENCE", STRING: "STRING"}[one.param.form]
    kind = "" if one.type is None else f", {_kind(one.type)}"
    return f'_marshal.Param("{one.name}", _marshal.{one.param.mode.upper()}, _marshal.{form}{kind})'


def _constant(operation: Operation) -> str:
    """The name of a method's description; a name of one of the types or constants cannot be it."""
    return f"METHOD_{operation.name}"


def _results(operation: Operation) -> list[Parameter]:
    return [one for one in operation.parameters if one.param.is_out and one.param.form != SEQUENCE]


def _stub(interface: Interface) -> str:
    name = class_name(interface.name)
    lines = [
        f'"""The stub of {interface.name}, for programs. {NOTE}"""',
        "",
        "from typing import Any as _Any",
        "",
        f"import {interface.name}_idl as _idl",
        "from fastrpc import Interface as _Interface",
        "",
        "",
        f"class {name}(_Interface):",
        f'    """An open {interface.name}; methods raise AeeError."""',
        "",
        f'    INTERFACE = "{interface.name}"',
    ]
    for one in interface.operations:
        given = [each for each in one.parameters if each.param.is_in or each.param.form != VALUE]
        parameters = "".join(f", {each.name}: {_given_type(each)}" for each in given)
        arguments = "".join(f", {each.name}" for each in given)
        lines += [
            "",
            f"    def {one.name}(self{parameters}) -> _Any:",
            f'        """Method {one.method.number}{_told(one)}."""',
            f"        return self.call(_idl.{_constant(one)}{arguments})",
        ]
    return "\n".join([*lines, ""])


def _given_type(one: Parameter) -> str:
    if one.param.form == STRING:
        return "int" if one.param.is_out else "str"
    return "float" if one.param.form == VALUE and _is_float(one) else "int" if _is_integer(one) else "_Any"


def _is_float(one: Parameter) -> bool:
    return isinstance(one.type, Scalar) and one.type.c in {"float", "double"}


def _is_integer(one: Parameter) -> bool:
    return one.param.form == VALUE and not isinstance(one.type, Struct)


def _told(operation: Operation) -> str:
    told = [
        one.name
        for one in operation.parameters
        if one.param.is_out and (one.param.form == VALUE or not one.param.is_in)
    ]
    return f"; returns {', '.join(told)}" if told else ""


def _skeleton(interface: Interface) -> str:
    name = class_name(interface.name)
    lines = [
        f'"""The skeleton of {interface.name}, for images: derive from it, and call register() in main(). {NOTE}"""',
        "",
        "from typing import Any as _Any",
        "",
        f"import {interface.name}_idl as _idl",
        "from dsp_server.fastrpc import Skeleton as _Skeleton",
        "",
        "",
        f"class {name}Skel(_Skeleton):",
        f'    """An object of {interface.name}; methods raise AeeError to fail."""',
        "",
        f'    INTERFACE = "{interface.name}"',
        "    METHODS = _idl.METHODS",
    ]
    for one in interface.operations:
        given = [each for each in one.parameters if each.param.is_in or each.param.form == SEQUENCE]
        parameters = "".join(f", {each.name}: _Any" for each in given)
        told = ", ".join(each.name for each in _results(one))
        lines += [
            "",
            f"    def {one.name}(self{parameters}) -> _Any:",
            f'        """Method {one.method.number}; returns {told or "None"}."""',
            "        raise NotImplementedError",
        ]
    return "\n".join([*lines, ""])

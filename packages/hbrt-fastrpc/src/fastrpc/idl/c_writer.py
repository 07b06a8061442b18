"""A file of interfaces in C: a header for both sides, a stub for programs, a skeleton for images. Pure."""

from __future__ import annotations

import ctypes
from typing import Final, cast

from fastrpc.idl import c_parts
from fastrpc.idl.c_types import c_of, declarations, element_of, header_of, is_pointer
from fastrpc.idl.model import Array, Constant, File, Handle, Interface, Operation, Parameter, String, Struct
from fastrpc.idl.names import CPP_WORDS, NOTE, identifier
from fastrpc.wire import uri
from fastrpc.wire.marshal import shares
from fastrpc.wire.scalars import LONG_METHOD

_WORD_OF: Final = 0x1FFF_FFFF  # without the attribute
# Macros of the vendor's compiler: programs rename functions with them.
_MACROS: Final = ("HEADER", "IMPL", "STUB", "SKEL")


def files(file: File) -> dict[str, str]:
    """The text of each file, by name; an interface whose name differs from its file's gets files that include these."""
    name = file.name
    made = {f"{name}.h": _header(file)}
    if file.interfaces:
        made |= {f"{name}_stub.c": _stub(file), f"{name}_skel.c": _skeleton(file)}
    ends = (".h", "_stub.c", "_skel.c") if len(file.interfaces) == 1 else (".h",)
    for one in file.interfaces:
        made = {f"{one.c}{end}": f'/* {NOTE} */\n#include "{name}{end}"\n' for end in ends} | made
    return made


# -- the header


def _header(file: File) -> str:
    name = file.name
    lines = [
        f"/* {name}.idl, for programs and images. {NOTE} */",
        f"#ifndef HBRT_IDL_{identifier(name)}_H",
        f"#define HBRT_IDL_{identifier(name)}_H",
        "",
        "#include <stdbool.h>",
        "#include <stdint.h>",
        "",
        '#include "AEEStdDef.h"',
        '#include "AEEStdErr.h"',
        '#include "remote.h"',
        *(f'#include "{one}.h"' for one in file.includes if one != "AEEStdErr"),
        "",
        *_macros("HEADER", "IMPL"),
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    for constant in file.constants:
        lines += [f"#ifndef {constant.name}", f"#define {constant.name} {_shown(constant)}", "#endif"]
    for one in file.types:
        lines += ["", f"#ifndef HBRT_IDL_TYPE_{one.c}", f"#define HBRT_IDL_TYPE_{one.c}", *header_of(one), "#endif"]
    for interface in file.interfaces:
        lines += ["", *_declared(interface, file)]
    return "\n".join([*lines, "", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


def _macros(*families: str) -> list[str]:
    lines = []
    for family in families:
        macro = f"__QAIC_{family}"
        lines += [f"#ifndef {macro}", f"#define {macro}(name) name", "#endif"]
        for end in ("EXPORT", "ATTRIBUTE"):
            lines += [f"#ifndef {macro}_{end}", f"#define {macro}_{end}", "#endif"]
    return lines


def _shown(constant: Constant) -> str:
    return f"({constant.text})" if constant.text.startswith("-") else constant.text


def _declared(interface: Interface, file: File) -> list[str]:
    name = interface.c
    named = uri.of_interface(name, file.name, file.version if interface.has_handle else "")
    lines = [f"#ifndef {name}_URI", f'#define {name}_URI "{named}"', "#endif"]
    if interface.has_handle:
        lines += [
            f"{_function('HEADER', 'int', f'{name}_open', 'const char *uri, remote_handle64 *h')};",
            f"{_function('HEADER', 'int', f'{name}_close', 'remote_handle64 h')};",
        ]
    lines += [f"{_prototype('HEADER', interface, one, names=True)};" for one in interface.operations]
    lines += [
        "",
        f"int {uri.symbol_of(name)}(remote_handle64 _h, uint32_t _sc, remote_arg *_pra);",
        *([] if interface.has_handle else [f"int {name}_skel_invoke(uint32_t _sc, remote_arg *_pra);"]),
        "/* Serves the interface; in main() of an image, after hb_dsp_env_init(). */",
        f"int {name}_skel_register(void);",
    ]
    return lines


def _function(family: str, returned: str, name: str, parameters: str) -> str:
    macro = f"__QAIC_{family}"
    name = name if family == "HEADER" else f"{macro}({name})"
    return f"{macro}_EXPORT {returned} {name}({parameters}) {macro}_ATTRIBUTE"


def _prototype(family: str, interface: Interface, operation: Operation, *, names: bool = False) -> str:
    """The declaration of a method's function; a definition uses other names, which hide no type or function."""
    parts = ["remote_handle64 _h"] if interface.has_handle else []
    parts += [f"fastrpc_async_descriptor_t *{'asyncDesc' if names else '_async'}"] if operation.is_async else []
    for at, one in enumerate(operation.parameters):
        parts += declarations(one, one.name if names and one.name not in CPP_WORDS else f"_p{at}")
    returned = (
        "void" if operation.returns is None else "int" if operation.returns.c == "int32_t" else operation.returns.c
    )
    return _function(family, returned, f"{interface.c}_{operation.name}", ", ".join(parts) or "void")


# -- the stub


def _stub(file: File) -> str:
    has_parts = any(one.method.has_parts for interface in file.interfaces for one in interface.operations)
    lines = [
        f"/* The stubs of {file.name}.idl, for programs. {NOTE} */",
        f'#include "{file.name}.h"',
        "",
        "#include <pthread.h>",
        "#include <stdlib.h>",
        "#include <string.h>",
        "",
        *_macros("STUB"),
        *([c_parts.ARENA] if has_parts else []),
    ]
    for interface in file.interfaces:
        name = interface.c
        if interface.has_handle:
            opened, closed = "const char *uri, remote_handle64 *h", "remote_handle64 h"
            lines += [
                f"{_function('STUB', 'int', f'{name}_open', opened)} {{ return remote_handle64_open(uri, h); }}",
                f"{_function('STUB', 'int', f'{name}_close', closed)} {{ return remote_handle64_close(h); }}",
            ]
        elif interface.operations and interface.static_handle is None:
            lines += _opener(interface)
        for one in interface.operations:
            lines += ["", *_stub_of(interface, one)]
    return "\n".join([*lines, ""])


def _opener(interface: Interface) -> list[str]:
    """The functions of an interface without handles need no open: the first call opens the default domain."""
    return [
        f"static int _{interface.c}_opened(remote_handle64 *_h) {{",
        "  static pthread_mutex_t _lock = PTHREAD_MUTEX_INITIALIZER;",
        "  static remote_handle64 _kept;",
        "  int _err = 0;",
        "  pthread_mutex_lock(&_lock);",
        f'  if (!_kept) _err = remote_handle64_open({interface.c}_URI "&_dom=cdsp", &_kept);',
        "  *_h = _kept;",
        "  pthread_mutex_unlock(&_lock);",
        "  return _err;",
        "}",
    ]


def _stub_of(interface: Interface, operation: Operation) -> list[str]:
    head = [f"{_prototype('STUB', interface, operation)} {{", "  int _err;"]
    back = "return (void)_err" if operation.returns is None else "return _err"
    if not interface.has_handle:
        head.append("  remote_handle64 _h;")
    checks = []
    for at, one in enumerate(operation.parameters):
        if _has_length(one):
            checks.append(f"  if (_p{at}Len < 0) {_return('AEE_EBADPARM', operation)};")
        elif not isinstance(one.type, Handle) and _needs_pointer(one):
            checks.append(f"  if (!_p{at}) {_return('AEE_EBADPARM', operation)};")
    if interface.static_handle is not None:
        checks.append(f"  _h = {interface.static_handle};")
    elif not interface.has_handle:
        checks += [f"  _err = _{interface.c}_opened(&_h);", f"  if (_err) {_return('_err', operation)};"]
    body = c_parts.stub(operation) if operation.method.has_parts else _simple_stub(operation)
    return [*head, *_declared_first(body), *checks, *_rest(body), f"  {back};", "}"]


def _return(value: str, operation: Operation) -> str:
    return "return" if operation.returns is None else f"return {value}"


def _declared_first(body: tuple[list[str], list[str]]) -> list[str]:
    return body[0]


def _rest(body: tuple[list[str], list[str]]) -> list[str]:
    return body[1]


def _simple_stub(operation: Operation) -> tuple[list[str], list[str]]:
    """Declarations and statements of a stub with values, strings and sequences in one piece as parameters."""
    method = operation.method
    handles = [at for at, one in enumerate(operation.parameters) if isinstance(one.type, Handle)]
    declared = [f"  remote_arg _pra[{max(method.buffers + len(handles), 1)}];"]
    if handles:
        declared.append("  memset(_pra, 0, sizeof _pra);")
    if method.input.size_bytes:
        declared.insert(0, f"  uint8_t _in[{method.input.size_bytes}] = {{0}};")
    if method.output.size_bytes:
        declared.insert(0, f"  uint8_t _out[{method.output.size_bytes}] = {{0}};")
    lines = []
    offsets = iter(method.input.offsets)
    if method.is_long:
        lines.append(f"  {{ const uint32_t _v = {method.number}; memcpy(_in + {next(offsets)}, &_v, sizeof _v); }}")
    for at, one in enumerate(operation.parameters):
        lines += [f"  {_packed(one, at, next(offsets))}" for _ in shares(method.params[at])[0]]
    each = list(enumerate(operation.parameters))
    buffers = [("_in", "sizeof _in")] if method.input.size_bytes else []
    buffers += [_buffer(one, at) for at, one in each if one.is_buffer and one.is_in]
    buffers += [("_out", "sizeof _out")] if method.output.size_bytes else []
    buffers += [_buffer(one, at) for at, one in each if one.is_buffer and one.is_out]
    for at, (pointer, size) in enumerate(buffers):
        lines.append(f"  _pra[{at}].buf.pv = (void *){pointer}, _pra[{at}].buf.nLen = {size};")
    lines += _handles_sent(operation, len(buffers))
    invoke = "remote_handle64_invoke_async(_h, _async" if operation.is_async else "remote_handle64_invoke(_h"
    lines.append(f"  _err = {invoke}, {method.word:#010x}, _pra);")
    lines += [f"  if (!_err) {one}" for one in _read_back(operation)]
    return declared, lines


def _handles_sent(operation: Operation, place: int) -> list[str]:
    lines = []
    for at, one in enumerate(operation.parameters):
        if not isinstance(one.type, Handle) or one.is_out:
            continue
        if one.type.is_memory:
            lines += [
                f"  _err = remote_register_dma_handle(_p{at}, _p{at}Len);",
                f"  if (_err) {_return('_err', operation)};",
                f"  _pra[{place}].dma.fd = _p{at}, _pra[{place}].dma.offset = _p{at}Offset;",
            ]
        else:
            lines.append(f"  _pra[{place}].h64 = _p{at};")
        place += 1
    return lines


def _has_length(one: Parameter) -> bool:
    return one.is_buffer and not (isinstance(one.type, String) and not one.is_out)


def _needs_pointer(one: Parameter) -> bool:
    return isinstance(one.type, String) or (not one.is_buffer and is_pointer(one))


def _packed(one: Parameter, at: int, offset: int) -> str:
    """A statement that puts a value or a length into the block."""
    if isinstance(one.type, String) and not one.is_out:
        value = f"const uint32_t _v = {_text_length(one.type, f'_p{at}')}"
    elif one.is_buffer:
        value = f"const uint32_t _v = (uint32_t)_p{at}Len"
    elif is_pointer(one):
        return f"memcpy(_in + {offset}, _p{at}, sizeof({c_of(one.type)}));"
    else:
        value = f"const {c_of(one.type)} _v = _p{at}"
    return f"{{ {value}; memcpy(_in + {offset}, &_v, sizeof _v); }}"


def _text_length(kind: String, name: str) -> str:
    """The characters of a string, including the NUL."""
    return f"hbrt_wide_length({name})" if kind.is_wide else f"(uint32_t)strlen({name}) + 1"


def _buffer(one: Parameter, at: int) -> tuple[str, str]:
    name, size = f"_p{at}", f"sizeof *_p{at}"
    if isinstance(one.type, String) and not one.is_out:
        return name, f"(size_t)({_text_length(one.type, name)}) * {size}"
    return name, f"(size_t)_p{at}Len * {size}"


def _read_back(operation: Operation) -> list[str]:
    lines = []
    method = operation.method
    values = [(at, one) for at, one in enumerate(operation.parameters) if _is_value(one) and one.is_out]
    for (at, one), offset in zip(values, method.output.offsets, strict=True):
        lines.append(f"memcpy(_p{at}, _out + {offset}, sizeof({c_of(one.type)}));")
    for at, one in enumerate(operation.parameters):
        if isinstance(one.type, String) and one.is_out:
            lines.append(f"if (_p{at}Len > 0) _p{at}[_p{at}Len - 1] = 0;")
    place = method.buffers + sum(isinstance(one.type, Handle) and one.is_in for one in operation.parameters)
    for at, one in enumerate(operation.parameters):
        if isinstance(one.type, Handle) and one.is_out:
            lines.append(f"*_p{at} = _pra[{place}].h64;")
            place += 1
    return lines


def _is_value(one: Parameter) -> bool:
    return not one.is_buffer and not isinstance(one.type, Handle)


# -- the skeleton


def _skeleton(file: File) -> str:
    has_parts = any(one.method.has_parts for interface in file.interfaces for one in interface.operations)
    lines = [
        f"/* The skeletons of {file.name}.idl, for images: link them with the functions of {file.name}.h. {NOTE} */",
        f'#include "{file.name}.h"',
        "",
        "#include <stdlib.h>",
        "#include <string.h>",
        "",
        *_macros("SKEL"),
        "#define _BAD HBRT_FASTRPC_ON_DSP(AEE_EBADPARM)",
        *([c_parts.ARENA] if has_parts else []),
    ]
    for interface in file.interfaces:
        for one in interface.operations:
            lines += ["", *_skeleton_of(interface, one)]
        lines += ["", *_dispatch(interface, file.version)]
    return "\n".join([*lines, ""])


def _dispatch(interface: Interface, version: str) -> list[str]:
    name, symbol = interface.c, uri.symbol_of(interface.c)
    lines = [
        f"int {symbol}(remote_handle64 _h, uint32_t _sc, remote_arg *_pra) {{",
        "  uint32_t _method = REMOTE_SCALARS_METHOD(_sc);",
        f"  if (_method == {LONG_METHOD}) {{",
        "    if (!REMOTE_SCALARS_INBUFS(_sc) || _pra[0].buf.nLen < sizeof _method) return _BAD;",
        "    memcpy(&_method, _pra[0].buf.pv, sizeof _method);",
        "  }",
        "  (void)_h, (void)_pra;",
        "  switch (_method) {",
    ]
    if interface.has_handle:
        lines += [
            "    case 0: {",
            "      remote_handle64 _made = 0;",
            f"      if ((_sc & {_WORD_OF:#x}) != REMOTE_SCALARS_MAKE(0, 2, 1)) return _BAD;",
            *(
                [f'      if (hbrt_fastrpc_is_newer(_pra[1].buf.pv, "{version}")) return AEE_ESTUBSKELVERMISMATCH;']
                if version
                else []
            ),
            f"      const int _err = __QAIC_IMPL({name}_open)((const char *)_pra[1].buf.pv, &_made);",
            "      memcpy(_pra[2].buf.pv, &_made, sizeof _made);",
            "      return _err;",
            "    }",
            f"    case 1: return (_sc & {_WORD_OF:#x}) == {0x0100_0000:#x} ? __QAIC_IMPL({name}_close)(_h) : _BAD;",
        ]
    for one in interface.operations:
        call = f"_call_{name}_{one.name}"
        if one.method.has_parts:
            lines.append(f"    case {one.number}: return {call}(_h, _sc, _pra);")
        else:
            right = f"(_sc & {_WORD_OF:#x}) == {one.method.word:#x}"
            lines.append(f"    case {one.number}: return {right} ? {call}(_h, _pra) : _BAD;")
    lines += ["    default: return HBRT_FASTRPC_ON_DSP(AEE_EUNSUPPORTED);", "  }", "}", ""]
    if not interface.has_handle:
        lines += [f"int {name}_skel_invoke(uint32_t _sc, remote_arg *_pra) {{ return {symbol}(0, _sc, _pra); }}", ""]
    return [
        *lines,
        f"int {name}_skel_register(void) {{",
        f'  return hbrt_fastrpc_register("{symbol}", {symbol}, {int(interface.has_handle)});',
        "}",
        f"__attribute__((constructor)) static void _offer_{name}(void) {{ hbrt_fastrpc_offer({name}_skel_register); }}",
    ]


def _skeleton_of(interface: Interface, operation: Operation) -> list[str]:
    name = f"_call_{interface.c}_{operation.name}"
    called = f"__QAIC_IMPL({interface.c}_{operation.name})"
    if operation.method.has_parts:
        return c_parts.skeleton(interface, operation, name, called)
    method = operation.method
    inputs = method.inputs
    at_in, at_out = int(bool(method.input.size_bytes)), inputs + int(bool(method.output.size_bytes))
    lines = [f"static int {name}(remote_handle64 _h, remote_arg *_pra) {{", "  (void)_h, (void)_pra;"]
    if method.input.size_bytes:
        lines += [
            "  const uint8_t *_in = (const uint8_t *)_pra[0].buf.pv;",
            f"  if (_pra[0].buf.nLen < {method.input.size_bytes}) return _BAD;",
            "  (void)_in;",
        ]
    if method.output.size_bytes:
        lines += [
            f"  uint8_t *_out = (uint8_t *)_pra[{inputs}].buf.pv;",
            f"  if (_pra[{inputs}].buf.nLen < {method.output.size_bytes}) return _BAD;",
        ]
    offsets = iter(method.input.offsets[int(method.is_long) :])
    handles_in = method.buffers
    handles_out = handles_in + sum(isinstance(one.type, Handle) and one.is_in for one in operation.parameters)
    arguments = [*(["_h"] if interface.has_handle else []), *(["NULL"] if operation.is_async else [])]
    after: list[str] = []
    for at, one in enumerate(operation.parameters):
        if isinstance(one.type, Handle):
            place = handles_out if one.is_out else handles_in
            handles_in, handles_out = handles_in + int(one.is_in), handles_out + int(one.is_out)
            given, lines_of = _handle_argument(one, at, place)
        elif not one.is_buffer:
            given, lines_of = _value_argument(one, at, next(offsets) if one.is_in else -1)
        else:
            came = at_in if one.is_in else -1
            back = at_out if one.is_out else -1
            at_in, at_out = at_in + int(one.is_in), at_out + int(one.is_out)
            lengths = [next(offsets) for _ in shares(method.params[at])[0]]
            given, lines_of = _buffer_argument(one, at, lengths[0], came, back)
        arguments.append(given)
        lines += lines_of
    lines += _called(operation, called, arguments)
    values = [(at, one) for at, one in enumerate(operation.parameters) if _is_value(one) and one.is_out]
    for (at, one), offset in zip(values, method.output.offsets, strict=True):
        after.append(f"  if (!_err) memcpy(_out + {offset}, {_address(one, at)}, sizeof({c_of(one.type)}));")
    return [*lines, *after, "  return _err;", "}"]


def _called(operation: Operation, called: str, arguments: list[str]) -> list[str]:
    call = f"{called}({', '.join(arguments)})"
    if operation.returns is None:
        return ["  const int _err = 0;", f"  {call};"]
    return [f"  const int _err = (int){call};"]


def _address(one: Parameter, at: int) -> str:
    return f"_p{at}" if isinstance(one.type, Array) else f"&_p{at}"


def _value_argument(one: Parameter, at: int, offset: int) -> tuple[str, list[str]]:
    address = _address(one, at)
    lines = [f"  {c_of(one.type)} _p{at};", f"  memset({address}, 0, sizeof _p{at});"]
    if offset >= 0:
        lines.append(f"  memcpy({address}, _in + {offset}, sizeof _p{at});")
    is_value = not one.is_out and not isinstance(one.type, Struct)
    return f"_p{at}" if is_value else address, lines


def _handle_argument(one: Parameter, at: int, place: int) -> tuple[str, list[str]]:
    if cast("Handle", one.type).is_memory:
        lines = [
            f"  uint32_t _p{at}Len = 0;",
            f"  if (adsp_mmap_fd_getinfo(_pra[{place}].dma.fd, &_p{at}Len)) return _BAD;",
        ]
        return f"_pra[{place}].dma.fd, _pra[{place}].dma.offset, _p{at}Len", lines
    return f"{'&' if one.is_out else ''}_pra[{place}].h64", []


def _buffer_argument(one: Parameter, at: int, offset: int, came: int, back: int) -> tuple[str, list[str]]:
    element = element_of(one.type)
    size = ctypes.sizeof(element.kind)
    length = f"_p{at}Len"
    lines = [f"  uint32_t {length};", f"  memcpy(&{length}, _in + {offset}, sizeof {length});"]
    lines += [
        f"  if ({length} > INT32_MAX || (uint64_t){length} * {size} > _pra[{place}].buf.nLen) return _BAD;"
        for place in (came, back)
        if place >= 0
    ]
    pointer = f"({element.c} *)_pra[{back if back >= 0 else came}].buf.pv"
    if isinstance(one.type, String) and back < 0:
        lines.append(f"  if (!{length} || ((const {element.c} *)_pra[{came}].buf.pv)[{length} - 1]) return _BAD;")
        return pointer, lines
    if came >= 0 and back >= 0:
        lines.append(f"  if ({length}) memcpy(_pra[{back}].buf.pv, _pra[{came}].buf.pv, (size_t){length} * {size});")
    return f"{pointer}, (int){length}", lines

"""An interface in C: a header for both sides, a stub for programs, a skeleton for images. Pure."""

from __future__ import annotations

import ctypes
from typing import Final

from hbrt.fastrpc import uri
from hbrt.fastrpc.marshal import SEQUENCE, STRING, VALUE
from hbrt.fastrpc.scalars import LONG_METHOD
from hbrt.idl.model import Enum, Interface, Operation, Parameter, Struct
from hbrt.idl.python_writer import NOTE

_WORD_OF: Final = 0x1FFF_FFFF  # without the attribute


def files(interface: Interface) -> dict[str, str]:
    """The text of each file, by its name."""
    name = interface.name
    return {f"{name}.h": _header(interface), f"{name}_stub.c": _stub(interface), f"{name}_skel.c": _skeleton(interface)}


# -- the header


def _header(interface: Interface) -> str:
    name = interface.name
    lines = [
        f"/* The interface {name}, for programs and images. {NOTE} */",
        f"#ifndef HBRT_IDL_{name}_H",
        f"#define HBRT_IDL_{name}_H",
        "",
        "#include <stdbool.h>",
        "#include <stdint.h>",
        "",
        '#include "AEEStdErr.h"',
        '#include "remote.h"',
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f'#define {name}_URI "{uri.of_interface(name)}"',
    ]
    for constant in interface.constants:
        lines += [f"#ifndef {constant.name}", f"#define {constant.name} {constant.text}", "#endif"]
    for one in interface.types:
        body = _enum(one) if isinstance(one, Enum) else _structure(one)
        lines += ["", f"#ifndef HBRT_IDL_TYPE_{one.name}", f"#define HBRT_IDL_TYPE_{one.name}", *body, "#endif"]
    lines.append("")
    if interface.has_handle:
        lines += [
            f"int {name}_open(const char *uri, remote_handle64 *h);",
            f"int {name}_close(remote_handle64 h);",
        ]
    lines += [f"{_prototype(interface, one)};" for one in interface.operations]
    lines += [
        "",
        f"int {uri.symbol_of(name)}(remote_handle64 _h, uint32_t _sc, remote_arg *_pra);",
        "/* Serves the interface; in main() of an image, after hb_dsp_env_init(). */",
        f"int {name}_skel_register(void);",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        "#endif",
        "",
    ]
    return "\n".join(lines)


def _enum(one: Enum) -> list[str]:
    return ["typedef enum {", *(f"  {name} = {value}," for name, value in one.values), f"}} {one.name};"]


def _structure(one: Struct) -> list[str]:
    rows = [f"  {each.type.c} {each.name}{f'[{each.length}]' if each.length else ''};" for each in one.fields]
    return ["typedef struct {", *rows, f"}} {one.name};"]


def _prototype(interface: Interface, operation: Operation) -> str:
    parts = ["remote_handle64 _h"] if interface.has_handle else []
    for one in operation.parameters:
        parts += _declarations(one)
    return f"int {interface.name}_{operation.name}({', '.join(parts) or 'void'})"


def _declarations(one: Parameter) -> list[str]:
    constant = "" if one.param.is_out else "const "
    if one.param.form == STRING:
        return [f"char *{one.name}", f"int {one.name}Len"] if one.param.is_out else [f"const char *{one.name}"]
    if one.param.form == SEQUENCE:
        return [f"{constant}{_c(one)} *{one.name}", f"int {one.name}Len"]
    is_pointer = one.param.is_out or isinstance(one.type, Struct)
    return [f"{constant}{_c(one)} *{one.name}" if is_pointer else f"{_c(one)} {one.name}"]


def _c(one: Parameter) -> str:
    return "char" if one.type is None else one.type.c


# -- the stub


def _stub(interface: Interface) -> str:
    name = interface.name
    lines = [
        f"/* The stub of {name}, for programs. {NOTE} */",
        f'#include "{name}.h"',
        "",
        "#include <pthread.h>",
        "#include <string.h>",
        "",
    ]
    if interface.has_handle:
        lines += [
            f"int {name}_open(const char *uri, remote_handle64 *h) {{ return remote_handle64_open(uri, h); }}",
            f"int {name}_close(remote_handle64 h) {{ return remote_handle64_close(h); }}",
        ]
    else:  # the functions stand alone: the first call opens the default domain
        lines += [
            "static int _opened(remote_handle64 *_h) {",
            "  static pthread_mutex_t _lock = PTHREAD_MUTEX_INITIALIZER;",
            "  static remote_handle64 _kept;",
            "  int _err = 0;",
            "  pthread_mutex_lock(&_lock);",
            f'  if (!_kept) _err = remote_handle64_open({name}_URI "&_dom=cdsp", &_kept);',
            "  *_h = _kept;",
            "  pthread_mutex_unlock(&_lock);",
            "  return _err;",
            "}",
        ]
    for one in interface.operations:
        lines += ["", *_stub_of(interface, one)]
    return "\n".join([*lines, ""])


def _stub_of(interface: Interface, operation: Operation) -> list[str]:
    method = operation.method
    count = (method.word >> 16 & 0xFF) + (method.word >> 8 & 0xFF)
    lines = [f"{_prototype(interface, operation)} {{"]
    if not interface.has_handle:
        lines.append("  remote_handle64 _h;")
    lines += [f"  remote_arg _pra[{max(count, 1)}];"]
    if method.input.size_bytes:
        lines.append(f"  uint8_t _in[{method.input.size_bytes}] = {{0}};")
    if method.output.size_bytes:
        lines.append(f"  uint8_t _out[{method.output.size_bytes}] = {{0}};")
    lines.append("  int _err;")
    lines += [f"  if ({one.name}Len < 0) return AEE_EBADPARM;" for one in operation.parameters if _has_length(one)]
    lines += [f"  if (!{one.name}) return AEE_EBADPARM;" for one in operation.parameters if _needs_pointer(one)]
    if not interface.has_handle:
        lines += ["  _err = _opened(&_h);", "  if (_err) return _err;"]
    offsets = iter(method.input.offsets)
    if method.is_long:
        lines.append(f"  {{ const uint32_t _v = {method.number}; memcpy(_in + {next(offsets)}, &_v, sizeof _v); }}")
    for one in operation.parameters:
        if one.is_buffer or one.param.is_in:
            lines.append(f"  {_packed(one, next(offsets))}")
    buffers = [("_in", "sizeof _in")] if method.input.size_bytes else []
    buffers += [_buffer(one) for one in operation.parameters if one.is_buffer and one.param.is_in]
    buffers += [("_out", "sizeof _out")] if method.output.size_bytes else []
    buffers += [_buffer(one) for one in operation.parameters if one.is_buffer and one.param.is_out]
    for at, (pointer, size) in enumerate(buffers):
        lines.append(f"  _pra[{at}].buf.pv = (void *){pointer}, _pra[{at}].buf.nLen = {size};")
    lines.append(f"  _err = remote_handle64_invoke(_h, {method.word:#010x}, _pra);")
    lines += [f"  if (!_err) {one}" for one in _read_back(operation)]
    return [*lines, "  return _err;", "}"]


def _has_length(one: Parameter) -> bool:
    return one.param.form == SEQUENCE or (one.param.form == STRING and one.param.is_out)


def _needs_pointer(one: Parameter) -> bool:
    is_text = one.param.form == STRING and not one.param.is_out
    return is_text or (one.param.form == VALUE and (one.param.is_out or isinstance(one.type, Struct)))


def _packed(one: Parameter, offset: int) -> str:
    """A statement that puts a value or a length into the block."""
    if one.param.form == STRING and not one.param.is_out:
        value = f"const uint32_t _v = (uint32_t)strlen({one.name}) + 1"
    elif one.is_buffer:
        value = f"const uint32_t _v = (uint32_t){one.name}Len"
    elif one.param.is_out or isinstance(one.type, Struct):
        return f"memcpy(_in + {offset}, {one.name}, sizeof *{one.name});"
    else:
        value = f"const {_c(one)} _v = {one.name}"
    return f"{{ {value}; memcpy(_in + {offset}, &_v, sizeof _v); }}"


def _buffer(one: Parameter) -> tuple[str, str]:
    if one.param.form == STRING:
        return one.name, f"(size_t){one.name}Len" if one.param.is_out else f"strlen({one.name}) + 1"
    return one.name, f"(size_t){one.name}Len * sizeof *{one.name}"


def _read_back(operation: Operation) -> list[str]:
    values = [one for one in operation.parameters if one.param.form == VALUE and one.param.is_out]
    offsets = operation.output.offsets
    return [f"memcpy({one.name}, _out + {at}, sizeof *{one.name});" for one, at in zip(values, offsets, strict=True)]


# -- the skeleton


def _skeleton(interface: Interface) -> str:
    name = interface.name
    lines = [
        f"/* The skeleton of {name}, for images: link it with the functions of {name}.h. {NOTE} */",
        f'#include "{name}.h"',
        "",
        "#include <string.h>",
        "",
        "#define _BAD HBRT_FASTRPC_ON_DSP(AEE_EBADPARM)",
    ]
    for one in interface.operations:
        lines += ["", *_skeleton_of(interface, one)]
    lines += [
        "",
        f"int {uri.symbol_of(name)}(remote_handle64 _h, uint32_t _sc, remote_arg *_pra) {{",
        "  uint32_t _method = REMOTE_SCALARS_METHOD(_sc);",
        f"  if (_method == {LONG_METHOD}) {{",
        "    if (!REMOTE_SCALARS_INBUFS(_sc) || _pra[0].buf.nLen < sizeof _method) return _BAD;",
        "    memcpy(&_method, _pra[0].buf.pv, sizeof _method);",
        "  }",
        "  switch (_method) {",
    ]
    if interface.has_handle:
        lines += [
            "    case 0: {",
            "      remote_handle64 _made = 0;",
            f"      if ((_sc & {_WORD_OF:#x}) != REMOTE_SCALARS_MAKE(0, 2, 1)) return _BAD;",
            f"      const int _err = {name}_open((const char *)_pra[1].buf.pv, &_made);",
            "      memcpy(_pra[2].buf.pv, &_made, sizeof _made);",
            "      return _err;",
            "    }",
            f"    case 1: return (_sc & {_WORD_OF:#x}) == REMOTE_SCALARS_MAKE(1, 0, 0) ? {name}_close(_h) : _BAD;",
        ]
    for one in interface.operations:
        word = one.method.word
        call = f"_call_{one.name}(_h, _pra)"
        lines.append(f"    case {one.method.number}: return (_sc & {_WORD_OF:#x}) == {word:#x} ? {call} : _BAD;")
    lines += [
        "    default: return HBRT_FASTRPC_ON_DSP(AEE_EUNSUPPORTED);",
        "  }",
        "}",
        "",
        f"int {name}_skel_register(void) {{",
        f'  return hbrt_fastrpc_register("{uri.symbol_of(name)}", {uri.symbol_of(name)}, {int(interface.has_handle)});',
        "}",
        "",
    ]
    return "\n".join(lines)


def _skeleton_of(interface: Interface, operation: Operation) -> list[str]:
    method = operation.method
    inputs = method.word >> 16 & 0xFF
    at_in, at_out = int(bool(method.input.size_bytes)), inputs + int(bool(method.output.size_bytes))
    lines = [f"static int _call_{operation.name}(remote_handle64 _h, remote_arg *_pra) {{", "  (void)_h, (void)_pra;"]
    if method.input.size_bytes:
        lines += [
            "  const uint8_t *_in = (const uint8_t *)_pra[0].buf.pv;",
            f"  if (_pra[0].buf.nLen < {method.input.size_bytes}) return _BAD;",
        ]
    if method.output.size_bytes:
        lines += [
            f"  uint8_t *_out = (uint8_t *)_pra[{inputs}].buf.pv;",
            f"  if (_pra[{inputs}].buf.nLen < {method.output.size_bytes}) return _BAD;",
        ]
    offsets = iter(method.input.offsets[int(method.is_long) :])
    arguments = ["_h"] if interface.has_handle else []
    for one in operation.parameters:
        offset = next(offsets) if one.is_buffer or one.param.is_in else -1
        if not one.is_buffer:
            given, lines_of = _value_argument(one, offset)
            arguments.append(given)
            lines += lines_of
            continue
        came = at_in if one.param.is_in else -1
        back = at_out if one.param.is_out else -1
        at_in, at_out = at_in + int(one.param.is_in), at_out + int(one.param.is_out)
        given, lines_of = _buffer_argument(one, offset, came, back)
        arguments.append(given)
        lines += lines_of
    lines.append(f"  const int _err = {interface.name}_{operation.name}({', '.join(arguments)});")
    values = [one for one in operation.parameters if one.param.form == VALUE and one.param.is_out]
    for one, at in zip(values, method.output.offsets, strict=True):
        lines.append(f"  if (!_err) memcpy(_out + {at}, &{one.name}, sizeof {one.name});")
    return [*lines, "  return _err;", "}"]


def _value_argument(one: Parameter, offset: int) -> tuple[str, list[str]]:
    lines = [f"  {_c(one)} {one.name};", f"  memset(&{one.name}, 0, sizeof {one.name});"]
    if offset >= 0:
        lines.append(f"  memcpy(&{one.name}, _in + {offset}, sizeof {one.name});")
    return (f"&{one.name}" if one.param.is_out or isinstance(one.type, Struct) else one.name), lines


def _buffer_argument(one: Parameter, offset: int, came: int, back: int) -> tuple[str, list[str]]:
    size = 1 if one.type is None else ctypes.sizeof(one.type.kind)
    lines = [f"  uint32_t {one.name}Len;", f"  memcpy(&{one.name}Len, _in + {offset}, sizeof {one.name}Len);"]
    lines += [
        f"  if ({one.name}Len > INT32_MAX || (uint64_t){one.name}Len * {size} > _pra[{at}].buf.nLen) return _BAD;"
        for at in (came, back)
        if at >= 0
    ]
    pointer = f"({_c(one)} *)_pra[{back if back >= 0 else came}].buf.pv"
    if one.param.form == STRING and back < 0:
        lines.append(f"  if (!{one.name}Len || ((const char *)_pra[{came}].buf.pv)[{one.name}Len - 1]) return _BAD;")
        return pointer, lines
    if came >= 0 and back >= 0:
        lines.append(
            f"  if ({one.name}Len) memcpy(_pra[{back}].buf.pv, _pra[{came}].buf.pv, (size_t){one.name}Len * {size});"
        )
    return f"{pointer}, (int){one.name}Len", lines

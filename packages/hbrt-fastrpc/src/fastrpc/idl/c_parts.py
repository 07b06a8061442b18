"""C methods whose parameters are passed in parts, in the layout of fastrpc/wire/marshal.py. Pure."""

from __future__ import annotations

import ctypes
from typing import Any, Final

from fastrpc.idl.c_types import c_of, element_of, is_pointer
from fastrpc.idl.model import (
    Array,
    Handle,
    Interface,
    Operation,
    Parameter,
    Sequence,
    String,
    Struct,
    Type,
    is_flat,
    kind_of,
)
from fastrpc.wire.marshal import MAX_BUFFERS, parts, shares
from fastrpc.wire.scalars import LONG_METHOD

ARENA: Final = """
/* Memory of one invocation. */
struct _piece {
  struct _piece *before;
  uint64_t bytes[1];
};

__attribute__((unused)) static void *_take(struct _piece **arena, uint64_t count, size_t size) {
  struct _piece *made = count * size < INT32_MAX ? calloc(1, sizeof *made + (size_t)count * size) : NULL;
  if (!made) return NULL;
  made->before = *arena;
  *arena = made;
  return made->bytes;
}

__attribute__((unused)) static void _free_arena(struct _piece *arena) {
  while (arena) {
    struct _piece *before = arena->before;
    free(arena);
    arena = before;
  }
}

__attribute__((unused)) static void _put(remote_arg **at, const void *data, size_t size) {
  (*at)->buf.pv = (void *)data, (*at)->buf.nLen = size;
  ++*at;
}

/* The next buffer; NULL if it is missing or too short. */
__attribute__((unused)) static void *_next(remote_arg **at, const remote_arg *end, uint64_t count, size_t size) {
  static uint64_t empty;
  if (*at == end || count > INT32_MAX || (*at)->buf.nLen < count * size) return NULL;
  void *found = (*at)->buf.pv;
  ++*at;
  return found ? found : &empty;
}

__attribute__((unused)) static uint32_t _length(const uint8_t *at) {
  uint32_t length;
  memcpy(&length, at, sizeof length);
  return length;
}
"""
COUNT, PACK, READ, UNPACK, ANSWER = "count", "pack", "read", "unpack", "answer"


def _offsets(kind: Struct, mode: str) -> list[tuple[int, int]]:
    """The offset of each field of a structure in parts in the two blocks; -1 if a block does not have it."""
    both = parts(kind.kind, mode)
    return [
        (getattr(both[0], one.name).offset if came else -1, getattr(both[1], one.name).offset if back else -1)
        for one in kind.fields
        for came, back in [parts(kind_of(one.type), mode)]
    ]


def _size(kind: type[Any] | None) -> int:
    return 0 if kind is None else ctypes.sizeof(kind)


class _Walk:
    """Writes one of the passes over the arguments of a method."""

    def __init__(self, phase: str) -> None:
        self.phase = phase
        self.lines: list[str] = []
        self._depth = 0

    def say(self, line: str) -> None:
        """Add a statement."""
        self.lines.append("  " * (1 + self._depth) + line)

    def value(self, kind: Type, mode: str, name: str, came: str, back: str) -> None:
        """A value that C calls ``name``; ``came`` and ``back`` are the offsets of its parts in the blocks."""
        if isinstance(kind, Struct) and not is_flat(kind):
            for one, (at_in, at_out) in zip(kind.fields, _offsets(kind, mode), strict=True):
                inner = (f"{came} + {at_in}", f"{back} + {at_out}")
                if isinstance(one.type, Sequence | String):
                    self.sequence(one.type, mode, f"{name}.{one.name}", f"{name}.{one.name}Len", inner[0])
                else:
                    self.value(one.type, mode, f"{name}.{one.name}", *inner)
        elif isinstance(kind, Sequence | String):
            self.sequence(kind, mode, f"{name}.data", f"{name}.dataLen", came)
        else:
            to_in, to_out = f"memcpy({came}, &{name}, sizeof {name});", f"memcpy({back}, &{name}, sizeof {name});"
            from_in, from_out = f"memcpy(&{name}, {came}, sizeof {name});", f"memcpy(&{name}, {back}, sizeof {name});"
            said = {
                PACK: to_in if mode != "rout" else "",
                READ: from_out if mode != "in" else "",
                UNPACK: from_in if mode != "rout" else "",
                ANSWER: to_out if mode != "in" else "",
            }.get(self.phase, "")
            if said:
                self.say(said)

    def sequence(self, kind: Sequence | String, mode: str, data: str, length: str, came: str) -> None:
        """A sequence or a string, whose elements are ``data`` and whose length is ``length`` in C."""
        if isinstance(kind, String) or is_flat(kind.element):
            self._whole(kind, mode, data, length, came)
            return
        if mode == "in" and self.phase in {READ, ANSWER}:
            return  # nothing comes back
        at_in, at_out = map(_size, parts(kind_of(kind.element), mode))
        self.say("{")
        self._depth += 1
        for line in self._head(at_in, at_out, data, length, came):
            self.say(line)
        at = self._depth
        self.say(f"for (int _i{at} = 0; _i{at} < {length}; ++_i{at}) {{")
        self._depth += 1
        constant = "const " if mode == "in" and self.phase in {COUNT, PACK} else ""
        self.say(f"{constant}{c_of(kind.element)} *_e{at} = &{data}[_i{at}]; (void)_e{at};")
        self.value(
            kind.element,
            mode,
            f"(*_e{at})",
            f"_in{at} + (size_t)_i{at} * {at_in}",
            f"_out{at} + (size_t)_i{at} * {at_out}",
        )
        self._depth -= 1
        self.say("}")
        self._depth -= 1
        self.say("}")

    def _head(self, at_in: int, at_out: int, data: str, length: str, came: str) -> list[str]:
        """The code of a pass for a sequence, before its elements."""
        at = self._depth
        block, answer = f"_in{at}", f"_out{at}"
        head: list[str] = []
        if self.phase == COUNT:
            head = [
                f"if ({length} < 0 || ({length} && !{data})) {_bad()}",
                f"_ins += 1, _outs += {int(at_out > 0)};",
            ]
        elif self.phase == PACK:
            head = [f"{{ const uint32_t _v = (uint32_t){length}; memcpy({came}, &_v, sizeof _v); }}"]
            for name, size, cursor in ((block, at_in, "_at_in"), (answer, at_out, "_at_out")):
                if size:
                    head += [
                        f"uint8_t *{name} = _take(&_arena, (uint32_t){length}, {size});",
                        f"if (!{name}) {_bad('AEE_ENOMEMORY')}",
                        f"_put(&{cursor}, {name}, (size_t){length} * {size});",
                    ]
        elif self.phase == UNPACK:
            head = [
                f"const uint32_t _n{at} = _length({came});",
                f"const uint8_t *{block} = _next(&_at_in, _end_in, _n{at}, {at_in});",
                f"{data} = _take(&_arena, _n{at}, sizeof *{data});",
                f"if (!{block} || !{data}) {_bad()}",
                f"{length} = (int)_n{at};",
            ]
            if at_out:
                head.append(f"if (!_next(&_at_out, _end_out, _n{at}, {at_out})) {_bad()}")
        elif at_out:
            head = [f"uint8_t *{answer} = _at_out++->buf.pv;"]
        return head

    def _whole(self, kind: Sequence | String, mode: str, data: str, length: str, came: str) -> None:
        """The code for a sequence in one piece, which is a buffer."""
        size = ctypes.sizeof(element_of(kind).kind)
        is_in, is_out = mode != "rout", mode != "in"
        if self.phase == COUNT:
            self.say(f"if ({length} < 0 || ({length} && !{data})) {_bad()}")
            self.say(f"_ins += {int(is_in)}, _outs += {int(is_out)};")
        elif self.phase == PACK:
            for place in [came, f"{came} + 4"][: is_in + is_out]:
                self.say(f"{{ const uint32_t _v = (uint32_t){length}; memcpy({place}, &_v, sizeof _v); }}")
            for is_there, at in ((is_in, "_at_in"), (is_out, "_at_out")):
                if is_there:
                    self.say(f"_put(&{at}, {data}, (size_t){length} * {size});")
        elif self.phase == UNPACK:
            self._unpack_whole(kind, mode, data, length, came)
        elif is_out:
            if isinstance(kind, String) and self.phase == READ:
                self.say(f"if ({length} > 0) {data}[{length} - 1] = 0;")
            self.say("++_at_out;")

    def _unpack_whole(self, kind: Sequence | String, mode: str, data: str, length: str, came: str) -> None:
        size = ctypes.sizeof(element_of(kind).kind)
        is_in, is_out = mode != "rout", mode != "in"
        self.say(f"{length} = (int)_length({came});")
        if is_in:
            self.say(f"{data} = _next(&_at_in, _end_in, (uint32_t){length}, {size});")
            self.say(f"if (!{data}) {_bad()}")
            if isinstance(kind, String):
                self.say(f"if (!{length} || {data}[{length} - 1]) {_bad()}")
        if is_out:
            self.say("{")
            self.say(f"  const void *_given = {data if is_in else 'NULL'};")
            self.say(f"  {data} = _next(&_at_out, _end_out, (uint32_t){length}, {size});")
            self.say(f"  if (!{data}) {_bad()}")
            self.say(f"  if (_given) memcpy({data}, _given, (size_t){length} * {size});")
            self.say("}")


def _bad(code: str = "AEE_EBADPARM") -> str:
    return f"{{ _err = {code}; goto _end; }}"


def _places(operation: Operation) -> list[tuple[int, int]]:
    """The offset of each parameter in the two blocks; -1 if a block does not have it."""
    method = operation.method
    came, back = iter(method.input.offsets[int(method.is_long) :]), iter(method.output.offsets)
    each = [shares(one) for one in method.params]
    return [(([next(came) for _ in one] or [-1])[0], ([next(back) for _ in other] or [-1])[0]) for one, other in each]


def _walk(phase: str, operation: Operation, *, is_stub: bool) -> list[str]:
    walk = _Walk(phase)
    for at, (one, (at_in, at_out)) in enumerate(zip(operation.parameters, _places(operation), strict=True)):
        came, back = f"_in + {at_in}", f"_out + {at_out}"
        if isinstance(one.type, Handle):
            continue
        if isinstance(one.type, Sequence | String):
            walk.sequence(one.type, one.mode, f"_p{at}", f"_p{at}Len", came)
        else:
            name = f"_p{at}" if not is_stub or not is_pointer(one) or isinstance(one.type, Array) else f"(*_p{at})"
            walk.value(one.type, one.mode, name, came, back)
    return walk.lines


def stub(operation: Operation) -> tuple[list[str], list[str]]:
    """Declarations and statements of a stub."""
    method = operation.method
    has_in, has_out = bool(method.input.size_bytes), bool(method.output.size_bytes)
    counts = method.handles
    declared = [
        "  struct _piece *_arena = NULL;",
        f"  size_t _ins = {int(has_in)}, _outs = {int(has_out)};",
        "  remote_arg *_pra, *_at_in, *_at_out;",
    ]
    declared += [f"  uint8_t _in[{method.input.size_bytes}] = {{0}};"] if has_in else []
    declared += [f"  uint8_t _out[{method.output.size_bytes}] = {{0}};"] if has_out else []
    lines = []
    for at, one in enumerate(operation.parameters):
        if isinstance(one.type, String) and not one.is_out:
            length = f"hbrt_wide_length(_p{at})" if one.type.is_wide else f"(uint32_t)strlen(_p{at}) + 1"
            lines.append(f"  const int _p{at}Len = (int)({length});")
    lines += [
        *_walk(COUNT, operation, is_stub=True),
        f"  if (_ins > {MAX_BUFFERS} || _outs > {MAX_BUFFERS}) {_bad('AEE_EUNSUPPORTED')}",
        f"  _pra = _take(&_arena, _ins + _outs + {max(sum(counts), 1)}, sizeof *_pra);",
        f"  if (!_pra) {_bad('AEE_ENOMEMORY')}",
        "  _at_in = _pra, _at_out = _pra + _ins;",
        *(["  _put(&_at_in, _in, sizeof _in);"] if has_in else []),
        *(["  _put(&_at_out, _out, sizeof _out);"] if has_out else []),
    ]
    if method.is_long:
        lines.append(f"  {{ const uint32_t _v = {operation.number}; memcpy(_in, &_v, sizeof _v); }}")
    lines += _walk(PACK, operation, is_stub=True)
    lines += _sent_handles(operation)
    word = f"REMOTE_SCALARS_MAKEX(0, {min(method.number, LONG_METHOD)}, _ins, _outs, {counts[0]}, {counts[1]})"
    lines += [
        f"  _err = remote_handle64_invoke(_h, {word}, _pra);",
        "  if (_err) goto _end;",
        f"  _at_out = _pra + _ins + {int(has_out)};",
        *_walk(READ, operation, is_stub=True),
        "_end:",
        "  (void)_at_out;",
        "  _free_arena(_arena);",
    ]
    return declared, lines


def _sent_handles(operation: Operation) -> list[str]:
    lines, place = [], 0
    for at, one in enumerate(operation.parameters):
        if isinstance(one.type, Handle) and not one.is_out:
            target = f"_pra[_ins + _outs + {place}]"
            place += 1
            if one.type.is_memory:
                lines.append(f"  if ((_err = remote_register_dma_handle(_p{at}, _p{at}Len)) != 0) goto _end;")
                lines.append(f"  {target}.dma.fd = _p{at}, {target}.dma.offset = _p{at}Offset;")
            else:
                lines.append(f"  {target}.h64 = _p{at};")
    return lines


def skeleton(interface: Interface, operation: Operation, name: str, called: str) -> list[str]:
    """The function of a skeleton."""
    method = operation.method
    has_in, has_out = bool(method.input.size_bytes), bool(method.output.size_bytes)
    lines = [
        f"static int {name}(remote_handle64 _h, uint32_t _sc, remote_arg *_pra) {{",
        "  int _err = 0;",
        "  struct _piece *_arena = NULL;",
        "  remote_arg *_at_in = _pra, *const _end_in = _pra + REMOTE_SCALARS_INBUFS(_sc);",
        "  remote_arg *_at_out = _end_in, *const _end_out = _end_in + REMOTE_SCALARS_OUTBUFS(_sc);",
        "  const uint8_t *_in = NULL;",
        "  uint8_t *_out = NULL;",
    ]
    arguments = ["_h"] if interface.has_handle else []
    counts = method.handles
    handles = {False: 0, True: counts[0]}
    checks: list[str] = []
    for at, one in enumerate(operation.parameters):
        lines += [f"  {text};" for text in _locals(one, at)]
        if isinstance(one.type, Handle):
            target = f"_end_out[{handles[one.is_out]}]"
            handles[one.is_out] += 1
            arguments.append(f"{'&' if one.is_out else ''}{target}.h64")
            if one.type.is_memory:
                arguments[-1] = f"{target}.dma.fd, {target}.dma.offset, _p{at}Len"
                checks.append(f"  if (adsp_mmap_fd_getinfo({target}.dma.fd, &_p{at}Len)) {_bad()}")
        elif isinstance(one.type, Sequence) or (isinstance(one.type, String) and one.is_out):
            arguments.append(f"_p{at}, _p{at}Len")
        else:
            takes_address = is_pointer(one) and not isinstance(one.type, Array | String)
            arguments.append(f"&_p{at}" if takes_address else f"_p{at}")
    lines.append("  (void)_h, (void)_in, (void)_out;")
    lines.append(
        f"  if (REMOTE_SCALARS_INHANDLES(_sc) != {counts[0]} || REMOTE_SCALARS_OUTHANDLES(_sc) != {counts[1]}) {_bad()}"
    )
    if has_in:
        lines.append(f"  if (!(_in = _next(&_at_in, _end_in, {method.input.size_bytes}, 1))) {_bad()}")
    if has_out:
        lines.append(f"  if (!(_out = _next(&_at_out, _end_out, {method.output.size_bytes}, 1))) {_bad()}")
    call = f"{called}({', '.join(arguments)})"
    lines += [
        *checks,
        *_walk(UNPACK, operation, is_stub=False),
        f"  if (_at_in != _end_in || _at_out != _end_out) {_bad()}",
        f"  {call};" if operation.returns is None else f"  _err = (int){call};",
        *([] if operation.returns is None else ["  _free_arena(_err ? _arena : NULL);", "  if (_err) return _err;"]),
        f"  _at_out = _end_in + {int(has_out)};",
        *_walk(ANSWER, operation, is_stub=False),
        "_end:",
        "  _free_arena(_arena);",
        "  return _err ? HBRT_FASTRPC_ON_DSP(_err) : 0;",
        "}",
    ]
    return lines


def _locals(one: Parameter, at: int) -> list[str]:
    if isinstance(one.type, Handle):
        return [f"uint32_t _p{at}Len = 0"] if one.type.is_memory else []
    if isinstance(one.type, Sequence | String):
        element = one.type.character if isinstance(one.type, String) else one.type.element
        return [f"{c_of(element)} *_p{at} = NULL", f"int _p{at}Len = 0"]
    return [
        f"{c_of(one.type)} _p{at} = {{0}}" if isinstance(one.type, Struct | Array) else f"{c_of(one.type)} _p{at} = 0"
    ]

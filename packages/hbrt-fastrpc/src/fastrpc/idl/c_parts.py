"""Methods whose parameters travel in parts: sequences of sequences or texts, and structures that have such. Pure.

Of a value, the numbers and the lengths lie in a block at their natural alignment, and each sequence of numbers is a
buffer of its own. The block of a sequence's elements is a buffer in front of theirs; what a ``rout`` has for the CPU
side lies in a second block. A method's scalar word has as many buffers as its arguments need, at most 254 of a kind.

Source: qualcomm/fastrpc, src/adsp_listener_stub.c, src/apps_std_skel.c, https://github.com/qualcomm/fastrpc
"""

from __future__ import annotations

import ctypes
import math
from typing import Final, NamedTuple, cast

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
)
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

/* The next buffer; NULL where it is not there, or is too short. */
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
MAX_BUFFERS: Final = 254
COUNT, PACK, READ, UNPACK, ANSWER = "count", "pack", "read", "unpack", "answer"


class _Size(NamedTuple):
    """Bytes and alignment of a value's part of a block."""

    bytes: int
    alignment: int


class _Wire:
    """Where parts of values lie in the two blocks."""

    def __init__(self, rows: list[tuple[Type, str, int]], start: int = 0) -> None:
        self.offsets: list[tuple[int, int]] = []  # of each in both blocks; -1 for nothing in it
        ends, alignments = [start, 0], [1, 1]
        for kind, mode, count in rows:
            place = [-1, -1]
            for at, size in enumerate(_sizes(kind, mode)):
                if size.bytes:
                    place[at] = -(-ends[at] // size.alignment) * size.alignment
                    ends[at] = place[at] + size.bytes * count
                    alignments[at] = max(alignments[at], size.alignment)
            self.offsets.append((place[0], place[1]))
        self.ends = ends
        self.alignments = alignments


def _sizes(kind: Type, mode: str) -> tuple[_Size, _Size]:
    """Of a value in the block of what comes in, and in that of what goes back."""
    nothing = _Size(0, 1)
    if isinstance(kind, Handle):
        return nothing, nothing
    if isinstance(kind, Sequence | String):
        return _Size(4, 4), nothing
    if is_flat(kind):
        one = _Size(ctypes.sizeof(kind.kind), ctypes.alignment(kind.kind))
        return (one if mode != "rout" else nothing), (one if mode != "in" else nothing)
    wire = _wire_of(kind, mode)
    whole = [_Size(-(-end // one) * one, one) for end, one in zip(wire.ends, wire.alignments, strict=True)]
    return whole[0], whole[1]


def _wire_of(kind: Type, mode: str) -> _Wire:
    fields = cast("Struct", kind).fields
    counts = [math.prod(one.lengths) for one in fields]
    return _Wire([(one.type, mode, count) for one, count in zip(fields, counts, strict=True)])


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
        """A value that C calls ``name``; ``came`` and ``back`` are where its parts of the blocks lie."""
        if isinstance(kind, Struct) and not is_flat(kind):
            wire = _wire_of(kind, mode)
            for one, (at_in, at_out) in zip(kind.fields, wire.offsets, strict=True):
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
        """A sequence or a text, whose elements C calls ``data`` and which are ``length``."""
        if isinstance(kind, String) or is_flat(kind.element):
            self._whole(kind, mode, data, length, came)
            return
        at_in, at_out = _sizes(kind.element, mode)
        self.say("{")
        self._depth += 1
        for line in self._head(at_in, at_out, data, length, came):
            self.say(line)
        before, at = len(self.lines), self._depth
        self.say(f"for (int _i{at} = 0; _i{at} < {length}; ++_i{at}) {{")
        self._depth += 1
        constant = "const " if mode == "in" and self.phase in {COUNT, PACK} else ""
        self.say(f"{constant}{c_of(kind.element)} *_e{at} = &{data}[_i{at}]; (void)_e{at};")
        inside = len(self.lines)
        self.value(
            kind.element,
            mode,
            f"(*_e{at})",
            f"_in{at} + (size_t)_i{at} * {at_in.bytes}",
            f"_out{at} + (size_t)_i{at} * {at_out.bytes}",
        )
        self._depth -= 1
        if len(self.lines) == inside:
            del self.lines[before:]
        else:
            self.say("}")
        self._depth -= 1
        self.say("}")

    def _head(self, at_in: _Size, at_out: _Size, data: str, length: str, came: str) -> list[str]:
        """What a pass does with a sequence before it goes through its elements."""
        at = self._depth
        block, answer = f"_in{at}", f"_out{at}"
        head: list[str] = []
        if self.phase == COUNT:
            head = [
                f"if ({length} < 0 || ({length} && !{data})) {_bad()}",
                f"_ins += 1, _outs += {int(at_out.bytes > 0)};",
            ]
        elif self.phase == PACK:
            head = [f"{{ const uint32_t _v = (uint32_t){length}; memcpy({came}, &_v, sizeof _v); }}"]
            for name, size, cursor in ((block, at_in, "_at_in"), (answer, at_out, "_at_out")):
                if size.bytes:
                    head += [
                        f"uint8_t *{name} = _take(&_arena, (uint32_t){length}, {size.bytes});",
                        f"if (!{name}) {_bad('AEE_ENOMEMORY')}",
                        f"_put(&{cursor}, {name}, (size_t){length} * {size.bytes});",
                    ]
        elif self.phase == UNPACK:
            head = [
                f"const uint32_t _n{at} = _length({came});",
                f"const uint8_t *{block} = _next(&_at_in, _end_in, _n{at}, {at_in.bytes});",
                f"{data} = _take(&_arena, _n{at}, sizeof *{data});",
                f"if (!{block} || !{data}) {_bad()}",
                f"{length} = (int)_n{at};",
            ]
            if at_out.bytes:
                head.append(f"if (!_next(&_at_out, _end_out, _n{at}, {at_out.bytes})) {_bad()}")
        elif at_out.bytes:
            head = [f"uint8_t *{answer} = _at_out++->buf.pv;"]
        return head

    def _whole(self, kind: Sequence | String, mode: str, data: str, length: str, came: str) -> None:
        """A sequence in one piece, which is a buffer."""
        size = ctypes.sizeof(element_of(kind).kind)
        is_in, is_out = mode != "rout", mode != "in"
        if self.phase == COUNT:
            self.say(f"if ({length} < 0 || ({length} && !{data})) {_bad()}")
            self.say(f"_ins += {int(is_in)}, _outs += {int(is_out)};")
        elif self.phase == PACK:
            self.say(f"{{ const uint32_t _v = (uint32_t){length}; memcpy({came}, &_v, sizeof _v); }}")
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


def _wire(operation: Operation) -> _Wire:
    is_long = operation.number >= LONG_METHOD
    return _Wire([(one.type, one.mode, 1) for one in operation.parameters], 4 if is_long else 0)


def _walk(phase: str, operation: Operation, *, is_stub: bool) -> list[str]:
    walk = _Walk(phase)
    for at, (one, (at_in, at_out)) in enumerate(zip(operation.parameters, _wire(operation).offsets, strict=True)):
        came, back = f"_in + {at_in}", f"_out + {at_out}"
        if isinstance(one.type, Handle):
            continue
        if isinstance(one.type, Sequence | String):
            walk.sequence(one.type, one.mode, f"_p{at}", f"_p{at}Len", came)
        else:
            name = f"_p{at}" if not is_stub or not is_pointer(one) or isinstance(one.type, Array) else f"(*_p{at})"
            walk.value(one.type, one.mode, name, came, back)
    return walk.lines


def _handle_counts(operation: Operation) -> tuple[int, int]:
    """How many handles go in, and how many come out."""
    outs = [one.is_out for one in operation.parameters if isinstance(one.type, Handle)]
    return outs.count(False), outs.count(True)


def stub(operation: Operation) -> tuple[list[str], list[str]]:
    """Declarations and statements of a stub."""
    wire = _wire(operation)
    has_in, has_out = bool(wire.ends[0]), bool(wire.ends[1])
    counts = _handle_counts(operation)
    declared = [
        "  struct _piece *_arena = NULL;",
        f"  size_t _ins = {int(has_in)}, _outs = {int(has_out)};",
        "  remote_arg *_pra, *_at_in, *_at_out;",
    ]
    declared += [f"  uint8_t _in[{wire.ends[0]}] = {{0}};"] if has_in else []
    declared += [f"  uint8_t _out[{wire.ends[1]}] = {{0}};"] if has_out else []
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
    if operation.number >= LONG_METHOD:
        lines.append(f"  {{ const uint32_t _v = {operation.number}; memcpy(_in, &_v, sizeof _v); }}")
    lines += _walk(PACK, operation, is_stub=True)
    lines += _sent_handles(operation)
    method = min(operation.number, LONG_METHOD)
    word = f"REMOTE_SCALARS_MAKEX(0, {method}, _ins, _outs, {counts[0]}, {counts[1]})"
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
    wire = _wire(operation)
    has_in, has_out = bool(wire.ends[0]), bool(wire.ends[1])
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
    counts = _handle_counts(operation)
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
        lines.append(f"  if (!(_in = _next(&_at_in, _end_in, {wire.ends[0]}, 1))) {_bad()}")
    if has_out:
        lines.append(f"  if (!(_out = _next(&_at_out, _end_out, {wire.ends[1]}, 1))) {_bad()}")
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

"""The runtime's functions as a table for C: Python and C images share one implementation.

If a function in the table raises, it keeps the exception and notifies the library (native/dsp/image.c). The library
ends the image's calling function, and ``ImageRuntime.run`` raises the exception again. A local variable ``site`` is
the ``file:line`` of the call in C: ``dsp_server.hardware.buffers.caller_line`` reads it.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable
from typing import Any, Final

from dsp_server import runtime
from dsp_server.c_images.engine import OpEngine
from dsp_server.c_images.memory import memory_at
from dsp_server.hardware import cycles, descriptors
from dsp_server.hardware.buffers import address_of
from dsp_server.hardware.cycles import COSTS_IN_C, IDMA_POLL_CYCLES, CycleCounter
from dsp_server.hardware.tcm import DEFAULT_ALIGN, BadTile, TcmError
from dsp_server.hardware.tile_manager import TileManager
from dsp_server.hardware.transfers import BadTransfer, QueueFull, Shape, checked_copy_2d
from hbrt.ddr.private_pages import bytes_at
from hbrt.native.files import library
from hbrt.native.symbolizer import Line, lines_of
from hbrt.profiles.work import NO_WORK
from hbrt.status import Status

VERSION: Final = 8
_MAP_FAILED: Final = (1 << 64) - 1
_MAX_FRAMES: Final = 256  # the interpreter's frames may be above those of an image
_IDENTIFIER = re.compile(r"([A-Za-z_]\w*)\W*\Z")

_i32, _i64, _u32, _u64 = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint32, ctypes.c_uint64
_text, _address = ctypes.c_char_p, ctypes.c_void_p


def _call(result: Any, *arguments: Any) -> Any:
    return ctypes.CFUNCTYPE(result, *arguments)


class _Table(ctypes.Structure):
    """``struct hbrt_dsp_calls`` of native/dsp/runtime.h."""

    _fields_ = (
        ("version", _u32),
        ("poll_cycles", _u32),
        ("begin", _call(None)),
        ("look", _call(None, _i32)),
        ("take_over", _call(None)),
        ("env_init", _call(_i32)),
        ("init_global_tm", _call(_i32, _text, _address, _i64, _address, _i64)),
        ("register_fn", _call(_i32, _text, _text, _i64, _address, _i64)),
        ("register_all", _call(_i32, _text, _i32)),
        ("start", _call(_i32, _text)),
        ("mem_map", _call(_u64, _text, _u64, _i64)),
        ("mem_unmap", _call(_i32, _text, _u64)),
        ("set_log_level", _call(_i32, _i32)),
        ("log", _call(None, _i32, _text)),
        ("allocate", _call(_u64, _text, _address, _i64, _i64, _i64)),
        ("free", _call(_i32, _text, _address, _address)),
        ("copy", _call(_i32, _text, _address, _address, _u64, ctypes.POINTER(_u32))),
        ("desc_done", _call(_i32, _text, _i32, _u64)),
        ("buffer_status", _call(_i32, _text, _i32)),
        ("cycles", _call(_u64, _u64)),
        ("clock", _call(_u32, _u32)),
        ("core_id", _call(_i32)),
        ("say", _call(None, _address, ctypes.c_size_t)),
        ("client", _call(_u64, _i32)),
    )


class COp:
    """An op in C: ``int op(void *input, void *output, void *tm)``.

    Args:
        image: The runtime of its image.
        address: Address of the function.
        name: Name of the function.
        source: ``file:line`` of its registration.

    Attributes:
        can_be_interrupted: Whether an urgent task may run in the middle of it.
    """

    can_be_interrupted = True

    def __init__(self, image: ImageRuntime, address: int, name: str, source: str) -> None:
        self.image = image
        self.address = address
        self.__name__ = name
        self.source = source

    def __call__(self, input: memoryview, output: memoryview, tm: TileManager) -> int:
        """Run the op; return its result, or raise the exception of a runtime call made by it."""
        image = self.image
        before, failure = image.tile_manager, image.failure.value  # of an op that this one may have interrupted
        image.tile_manager = tm
        try:
            return self.ended(image.run(self.address, input, output))
        finally:
            image.tile_manager, image.failure.value = before, failure

    def ended(self, result: int) -> int:
        """Return the op's result, or raise the exception of a runtime call made by it."""
        self.image.finish()
        if result and not runtime.context.map_failure:
            runtime.context.map_failure = self.image.failure.value.decode("utf-8", "replace")
        return result


class ImageRuntime:
    """The library that images link to, backed by this process's runtime.

    Raises:
        NotBuiltError: the library has not been built.
    """

    def __init__(self) -> None:
        path = library("libhbrt_dsp.so")
        self._library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        self._run = self._library.hbrt_dsp_run
        self._run.argtypes = (_address, _address, _address, _u64, _u64)
        self.caller = ctypes.cast(self._library.hbrt_dsp_call, _address).value  # an hbrt_call for the mailbox in C
        self.on_begin: Callable[[], None] = lambda: None  # called when it begins to run a task
        self.on_look: Callable[[], None] = lambda: None  # called during a task, after OpEngine.call
        self.engine = OpEngine(self._library)
        self._offered_main = _address.in_dll(self._library, "hbrt_dsp_offered_main")
        self._raised = _i32.in_dll(self._library, "hbrt_dsp_raised")
        self._told = (_u64 * 2).in_dll(self._library, "hbrt_dsp_clock")
        self._work = (_u64 * len(NO_WORK)).in_dll(self._library, "hbrt_dsp_work")
        model = (_u64 * len(COSTS_IN_C)).in_dll(self._library, "hbrt_cycles_model")
        model[:] = [*COSTS_IN_C]
        self.failure = (ctypes.c_char * 512).in_dll(self._library, "hbrt_dsp_failure")
        self._tile_manager_address = ctypes.addressof(ctypes.c_char.in_dll(self._library, "hbrt_dsp_tile_manager"))
        self.tile_manager: TileManager | None = None  # of the running op
        self._error: BaseException | None = None
        self.images: set[str] = set()  # files of the images that have been loaded
        self.error_site = ""  # the call that last raised
        functions = [self._guarded(name, kind) for name, kind in _Table._fields_[2:]]
        self._table = _Table(VERSION, IDMA_POLL_CYCLES, *functions)
        if self._library.hbrt_dsp_install(ctypes.byref(self._table), int(runtime.context.trace_fd >= 0)):
            raise RuntimeError(f"{path} belongs to another version of hbrt: build it again (in a clone: make native).")

    def watch(self, command: list[str], *, is_sanitized: bool) -> None:
        """Write the frames of C functions that crash or hang to the core's trace, using a command.

        Args:
            command: The command that writes them.
            is_sanitized: Whether a sanitizer reports crashes; then only the frames of hangs are written.
        """
        self._command = (_text * (len(command) + 1))(*(part.encode() for part in command), None)
        self._library.hbrt_dsp_watch(runtime.context.trace_fd, self._command, int(is_sanitized))

    def main_of_skeletons(self) -> int | None:
        """Address of a main() that serves what the loaded images offer, such as skeletons; None if nothing."""
        return self._offered_main.value

    def main(self, function: int, name: str) -> int:
        """Call an image's ``main()``; raise the exception of a runtime call made by it."""
        self._library.hbrt_dsp_main.argtypes = (_address, _text)
        result: int = self._library.hbrt_dsp_main(function, name.encode())
        self.finish()
        return result

    def run(self, function: int, input: memoryview, output: memoryview) -> int:
        """Call an op. Call ``finish`` next."""
        result: int = self._run(function, address_of(input), address_of(output), input.nbytes, output.nbytes)
        return result

    def line(self) -> Line:
        """Line of C running in this thread, by its debug information."""
        frames = (_address * _MAX_FRAMES)()
        count = self._library.hbrt_dsp_frames(frames, _MAX_FRAMES)
        objects = (_object_of(address) for address in frames[:count])
        inside = next(((file, hex(offset)) for file, offset in objects if file in self.images), None)
        return lines_of([inside])[0] if inside else ("", 0, "")

    def finish(self) -> None:
        """After a function of the image, raise the exception of a runtime call made by it."""
        if self._raised.value:
            error, self._error, self._raised.value = self._error, None, 0
            if error is not None:
                raise error.with_traceback(None)

    def _guarded(self, name: str, kind: Any) -> Any:
        function: Callable[..., Any] = getattr(self, f"_{name}")
        has_site = kind._argtypes_[:1] == (_text,)
        none = None if kind._restype_ is None else _MAP_FAILED if name == "mem_map" else 0

        def call(*arguments: Any) -> Any:
            where = name
            try:
                if has_site:
                    given, *rest = arguments
                    where = self._site() if given is None else given.decode("utf-8", "replace")
                    return function(where, *rest)
                return function(*arguments)
            except BaseException as error:  # noqa: BLE001 - the caller of the image's function raises it
                if self._error is None:
                    self._error, self.error_site = error, where
                self._raised.value = 1
                return none

        return kind(call)

    def _site(self) -> str:
        """Line of a call that did not pass its own."""
        file, line, _ = self.line()
        return f"{file}:{line}"

    def _fail(self, sentence: str) -> None:
        """Keep the reason why a call failed, for xvGetErrorInfo and for the text of a task that fails or crashes."""
        self.failure.value = sentence.encode()[: len(self.failure) - 1]

    # -- the functions of the table

    def _begin(self) -> None:
        self.on_begin()

    def _look(self, is_called: int) -> None:  # signal handlers run, too
        if is_called:
            self.on_look()

    def _take_over(self) -> None:
        self.engine.take_over()
        self._take_work(cycles.current())

    def _env_init(self) -> int:
        return runtime.hb_dsp_env_init()

    def _init_global_tm(self, site: str, pool0: int | None, size0: int, pool1: int | None, size1: int) -> int:
        for pool, name in ((pool0, "pool 0"), (pool1, "pool 1")):
            if pool and pool % DEFAULT_ALIGN:
                runtime.DSP_ERR(
                    "hb_dsp_init_global_tm at %s: %s starts at %#x, which is not a multiple of %d. Declare the array "
                    "with "
                    "HB_ALIGN64.", site, name, pool, DEFAULT_ALIGN,
                )  # fmt: skip
                return Status.HB_DSP_INVALID_ARGUMENT
        memories = [bytes_at(pool, max(size, 0)) if pool else None for pool, size in ((pool0, size0), (pool1, size1))]
        runtime.context.tile_manager = TileManager(size0, size1, (memories[0], memories[1]))
        return 0

    def _register_fn(self, site: str, name: bytes | None, cmd: int, function: int | None, latency: int) -> int:
        found = _IDENTIFIER.search((name or b"").decode("utf-8", "replace"))
        op = COp(self, function or 0, found[1] if found else f"op_{cmd:#x}", site)
        return runtime.hb_dsp_register_fn(cmd, op if function else None, latency)  # type: ignore[arg-type]  # refused

    def _register_all(self, _site: str, is_cv: int) -> int:
        return runtime.HB_DSP_REGISTER_CV_ALL() if is_cv else runtime.HB_DSP_REGISTER_NN_ALL()

    def _start(self, _site: str) -> int:
        runtime.hb_dsp_start()
        return -1

    def _mem_map(self, site: str, phy_addr: int, size_bytes: int) -> int:
        mapped = runtime.map_range(phy_addr, size_bytes)
        if mapped is runtime.MAP_FAILED:
            self._fail(runtime.context.map_failure)
            return _MAP_FAILED
        runtime.context.mappings.append(runtime.Mapping(mapped, phy_addr, site))
        runtime.context.mapped_bytes += len(mapped)
        return _address_of_ddr(phy_addr)

    def _mem_unmap(self, site: str, mapped: int) -> int:
        mappings = runtime.context.mappings
        for at in reversed(range(len(mappings))):
            address = _address_of_ddr(mappings[at].phy_addr)
            # Accept the address, its lower half (as kept by a 32-bit program), or the physical address, as in Python.
            if mapped in {address, address & 0xFFFF_FFFF, mappings[at].phy_addr}:
                del mappings[at]
                return 0
        return runtime.refuse_unmapping(f"{mapped:#x}", site)

    def _set_log_level(self, level: int) -> int:
        return runtime.hb_dsp_set_log_level(level)

    def _log(self, level: int, text: bytes) -> None:
        runtime.hb_dsp_log(level, text.decode("utf-8", "replace"))

    def _allocate(self, site: str, tm: int | None, size_bytes: int, color: int, align: int) -> int:
        try:
            return address_of(self._tiles(tm).allocate(size_bytes, color, align))
        except TcmError as error:
            self._fail(f"xvAllocateBuffer at {site}: {error}")
            return 0

    def _free(self, site: str, tm: int | None, tile: int | None) -> int:
        try:
            self._tiles(tm).free_at(tile or 0)
        except TcmError as error:
            self._fail(f"xvFreeBuffer at {site}: {error}")
            return -1
        return 0

    def _tiles(self, tm: int | None) -> TileManager:
        if self.tile_manager is None or tm != self._tile_manager_address:
            raise BadTile(f"{tm or 0:#x} is not a tile manager: pass the tm that the op was called with.")
        return self.tile_manager

    def _copy(self, site: str, dst: int | None, src: int | None, row_bytes: int, shape: Any) -> int:
        idma = descriptors.current()
        tiles = self.tile_manager or TileManager(0, 0)

        def memory(side: str, address: int | None, size_bytes: int) -> memoryview:
            return memory_at(side, address or 0, size_bytes, tiles)

        def queue() -> int:
            if not shape:
                to, from_ = memory("destination", dst, row_bytes), memory("source", src, row_bytes)
                if row_bytes <= min(len(to), len(from_)) and abs((dst or 0) - (src or 0)) >= row_bytes:
                    return idma.enqueue(to[:row_bytes], from_[:row_bytes], None, site)
                return idma.copy(to, from_, row_bytes)  # its error describes the mistake
            rows, src_pitch, dst_pitch, count, src_step, dst_step = shape[:6]
            if not count:
                raise BadTransfer("A copy of 0 tiles moves nothing: pass at least 1.")
            if idma.outstanding + count > idma.depth:
                raise QueueFull(
                    f"{idma.outstanding} iDMA descriptors are outstanding, and a copy of {count} tiles needs that many "
                    f"more, but the queue holds {idma.depth}: wait for some of them first."
                )
            asked, gaps = Shape(row_bytes, rows, src_pitch, dst_pitch), max(rows, 1) - 1
            copies = []
            for tile in range(count):
                to = memory("destination", dst and dst + tile * dst_step, gaps * dst_pitch + row_bytes)
                from_ = memory("source", src and src + tile * src_step, gaps * src_pitch + row_bytes)
                copies.append(checked_copy_2d(to, from_, asked))
            return [idma.enqueue(*copy, site) for copy in copies][-1]

        handle = idma.status_of(queue)
        if handle < 0:
            self._fail(f"An iDMA copy at {site}: {idma.last_error}")
        self._told[0], self._told[1] = cycles.current().cycles, idma.busy_until
        return handle

    def _desc_done(self, site: str, handle: int, spent: int) -> int:  # noqa: ARG002 - caller_line reads it
        counter = self._spend(spent)
        is_done = descriptors.current().desc_done(handle)
        self._told[0] = counter.cycles
        return int(is_done)

    def _buffer_status(self, site: str, is_wait: int) -> int:  # noqa: ARG002 - as above
        left = 0
        if is_wait:
            descriptors.current().wait_all()
        else:
            left = descriptors.current().poll()
        self._told[0] = cycles.current().cycles
        return left

    def _cycles(self, spent: int) -> int:
        return self._spend(spent).cycles

    def _spend(self, spent: int) -> CycleCounter:
        """Charge the cycles that the image has counted."""
        counter = cycles.current()
        if spent:
            counter.charge(spent)
            self._take_work(counter)
        return counter

    def _take_work(self, counter: CycleCounter) -> None:
        """Count what the image has done since the last call."""
        counter.add_work(self._work)
        ctypes.memset(self._work, 0, ctypes.sizeof(self._work))

    def _clock(self, frequency_hz: int) -> int:
        if frequency_hz:
            runtime.xos_set_clock_freq(frequency_hz)
        return runtime.xos_get_clock_freq()

    def _core_id(self) -> int:
        return runtime.hb_dsp_core_id()

    def _client(self, number: int) -> int:
        client = runtime.context.client_id if number < 0 else number
        return client << 32 | runtime.process_of(client)

    def _say(self, text: int, size_bytes: int) -> None:
        sys.stdout.buffer.write(ctypes.string_at(text, size_bytes))


def _address_of_ddr(phy_addr: int) -> int:
    """Return the address in this process of a byte of DDR that may be used."""
    ddr = runtime.context.ddr
    return 0 if ddr is None else ddr.address + ddr.offset_of(phy_addr)


class _Object(ctypes.Structure):
    """``Dl_info``."""

    _fields_ = (("file", _text), ("base", _address), ("symbol", _text), ("address", _address))


def _object_of(address: int | None) -> tuple[str, int]:
    """File that contains the machine code at an address, and the offset in it."""
    found = _Object()
    if address is None or not ctypes.CDLL(None).dladdr(_address(address), ctypes.byref(found)) or not found.file:
        return "", 0
    return found.file.decode("utf-8", "replace"), address - (found.base or 0)

"""An image in Hexagon code: a QEMU process next to the core's process serves the core's tasks.

The program maps the DDR file, and a page through which ``native/core/guest.c`` passes it tasks by their physical
addresses; ``native/hexagon/runtime.c`` of this package is the other side. One socket carries the program's requests
and messages during a task, another carries the answers. When the program ends, so does the core, by the same signal,
and is handled like any other core.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dsp_server import runtime
from dsp_server.c_images.elf import version_of
from dsp_server.c_images.image import image_runtime
from dsp_server.c_images.runtime_calls import COp
from dsp_server.errors import ImageError
from fastrpc.wire import message, scalars
from fastrpc.wire.message import FASTRPC_CMD
from hbrt.ddr.imported import ImportedFile
from hbrt.mailbox.spin import poll_budget_ns
from hbrt.native.files import library
from hbrt.native.hexagon_flags import QEMU, qemu

if TYPE_CHECKING:
    from dsp_server.hardware.tile_manager import TileManager

REGISTER, READY, MAP, LOG = 2, 3, 5, 6  # kinds of packets of native/core/guest.h
HEAD: Final = struct.Struct("<IIQQQQQ")
_MAX_BYTES: Final = HEAD.size + 4096
_PAGE_BYTES: Final = 1 << 16
OLDEST: Final = 0x67
"""Version whose processors run all older code; every QEMU with Hexagon support knows it."""
MISSING: Final = (
    f"An image of Hexagon code needs {QEMU}, which was not found: install QEMU's user programs (Debian: apt install "
    "qemu-user), or build the image for this machine: hbrt cc --dsp --target native."
)


def run_image(snapshot: str, origin: str) -> None:
    """Start an image's program, and have it serve the core's tasks.

    Raises:
        ImageError: QEMU was not found, or the program ends before it serves.
    """
    program_of_qemu = qemu()
    if program_of_qemu is None:
        raise ImageError(MISSING)
    Path(snapshot).chmod(0o700)  # QEMU decides what may run
    runtime.hb_dsp_env_init()
    program = Program(program_of_qemu, snapshot, origin)
    program.begin()
    try:
        runtime.hb_dsp_start()
    finally:
        program.end()


class GuestOp(COp):
    """An op of a Hexagon program, which runs one task at a time."""

    can_be_interrupted = False


class GuestFastrpc(GuestOp):
    """The op of FastRPC, whose program maps a call's buffers, which the core's checks cannot see."""

    def __call__(self, input: memoryview, output: memoryview, tm: TileManager) -> int:
        """Like ``COp``; under checks, the buffers are compared before and after the call."""
        ddr, client = runtime.context.ddr, runtime.context.client_id
        for watcher in runtime.context.watchers:
            for phy_addr, size_bytes in _buffers(input):
                if ddr is not None and ddr.refusal(phy_addr, size_bytes, client) is None:
                    watcher.mapped(phy_addr, size_bytes)
        return super().__call__(input, output, tm)


class Program:
    """A core's program.

    Args:
        qemu: Path of QEMU.
        snapshot: The image.
        origin: Its original file, for messages.
    """

    def __init__(self, qemu: str, snapshot: str, origin: str) -> None:
        self._qemu, self._origin = qemu, origin
        self._version = max(version_of(Path(snapshot).read_bytes()), OLDEST)
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._answers, their_answers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ddr = runtime.context.ddr
        if ddr is None:
            raise ImageError(f"The image {origin} runs only on a started board: hbrt start --image {origin}")
        self._ddr = ddr
        page = os.memfd_create("hbrt-hexagon", os.MFD_CLOEXEC)
        os.ftruncate(page, _PAGE_BYTES)
        self._page = mmap.mmap(page, _PAGE_BYTES)
        self._take = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)(self._taken)
        self._library = ctypes.CDLL(str(library("libfastrpc_dsp.so")))
        self._library.hbrt_guest_open(
            ctypes.byref(ctypes.c_char.from_buffer(self._page)),
            self._channel.fileno(),
            ctypes.c_void_p(ddr.address),
            ctypes.c_uint64(ddr.layout.ddr_base),
            ctypes.c_int64(poll_budget_ns()),
            self._take,
        )
        with theirs, their_answers:
            fd = os.open(f"/proc/self/fd/{ddr.fd}", os.O_RDWR | os.O_CLOEXEC)
            try:
                environment = os.environ | {
                    "HBRT_HEXAGON_CHANNEL": str(theirs.fileno()),
                    "HBRT_HEXAGON_ANSWERS": str(their_answers.fileno()),
                    "HBRT_HEXAGON_DDR": str(fd),
                    "HBRT_HEXAGON_CORE": str(runtime.context.index),
                    "HBRT_HEXAGON_PAGE": str(page),
                    "HBRT_HEXAGON_BYTES": str(ddr.layout.file_bytes),
                }
                self._process = subprocess.Popen(
                    [qemu, "-cpu", f"v{self._version:x}", "-0", Path(origin).name, snapshot],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    pass_fds=(fd, page, theirs.fileno(), their_answers.fileno()),
                )
            finally:
                os.close(fd)
                os.close(page)
        self._library.hbrt_guest_op.restype = ctypes.c_void_p

    def begin(self) -> None:
        """Register the program's ops, until it serves.

        Raises:
            ImageError: it ends before it is ready.
        """
        while True:
            kind, word, latency, *_ = _message(self._receive())
            if kind == READY:
                return
            if kind == REGISTER:
                runtime.hb_dsp_register_fn(word, self._op(word), latency)  # type: ignore[arg-type] # None is rejected
            elif kind == 0:
                raise ImageError(
                    f"The image {self._origin} does not start: its program {self._ending()}.{self._hint()}"
                )

    def end(self) -> None:
        """Have the program end."""
        self._channel.close()
        self._answers.close()
        self._process.wait()

    def _op(self, cmd: int) -> GuestOp | None:
        address = self._library.hbrt_guest_op(cmd)
        kind, name = (GuestFastrpc, "fastrpc") if cmd == FASTRPC_CMD else (GuestOp, "hexagon")
        return kind(image_runtime(), address, name, self._origin) if address else None

    def _taken(self, packet: int, size_bytes: int) -> None:
        """Read what the program sends while a task runs; empty bytes once it has ended."""
        kind, word, a, b, text = _message(ctypes.string_at(packet, size_bytes))
        try:
            if kind == MAP:
                self._map(a, b)
            elif kind == LOG:
                runtime.hb_dsp_log(word, "%s", text.decode(errors="replace"))
            elif kind == 0:
                self._die()
        except Exception as error:  # noqa: BLE001 - ctypes would drop it, and the program would wait for its answer
            if kind == MAP:
                self._answer(1)
            runtime.hb_dsp_log(runtime.HB_DSP_LOG_ERROR, "%s", f"{type(error).__name__}: {error}")

    def _map(self, phy_addr: int, size_bytes: int) -> None:
        """Answer whether the task's program may use a range, and from which file."""
        refusal = self._ddr.refusal(phy_addr, size_bytes, runtime.context.client_id)
        block = self._ddr.block_at(phy_addr)
        if refusal is not None or block is None:
            runtime.hb_dsp_log(runtime.HB_DSP_LOG_ERROR, "%s", refusal[1] if refusal else "No such memory.")
            self._answer(1)
            return
        word = self._ddr.imported(block.phy_addr)
        path, offset = b"", 0
        if word:
            file = ImportedFile.of(word)
            path, offset = f"/proc/{self._ddr.imports.holder}/fd/{file.fd}".encode(), file.offset
        self._answer(0, block.phy_addr, block.end, word, offset, text=path)

    def _answer(self, word: int, *numbers: int, text: bytes = b"") -> None:
        five = (*numbers, *(0,) * (5 - len(numbers)))
        try:
            self._answers.send(HEAD.pack(MAP, word, *five) + text)
        except OSError:
            self._die()

    def _receive(self) -> bytes:
        """The next packet; empty when the program has ended."""
        try:
            return self._channel.recv(_MAX_BYTES)
        except OSError:
            return b""

    def _ending(self) -> str:
        code = self._process.wait()
        return f"ended by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"

    def _hint(self) -> str:
        """Why the program ended before it served a task, if that can be told."""
        line = [self._qemu, "-cpu", f"v{self._version:x}", os.devnull]
        said = subprocess.run(line, capture_output=True, text=True, errors="replace", check=False).stderr
        if "CPU model" in said:  # QEMU looks for the processor first
            return (
                f" Its code is for v{self._version:x}, which this QEMU does not support ({said.strip()}): install a "
                f"newer QEMU, or build the image for v{OLDEST:x}, if its source allows that."
            )
        is_ours = self._process.returncode == 1
        return " It may have been built by another version of hbrt: if so, rebuild it." if is_ours else ""

    def _die(self) -> None:
        """End the core in the same way as its program."""
        said = self._ending()
        runtime.hb_dsp_log(runtime.HB_DSP_LOG_ERROR, "%s", f"The Hexagon program of {self._origin} {said}.")
        code = self._process.returncode
        number = -code if code < 0 else signal.SIGABRT
        signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
        os.kill(os.getpid(), number)


def _buffers(raw: memoryview) -> Iterator[tuple[int, int]]:
    """Physical address and bytes of each buffer of an invocation."""
    kind, word, _, count, _ = message.HEAD.unpack_from(raw) if len(raw) >= message.HEAD.size else (0,) * 5
    end = message.HEAD.size + count * message.ARGUMENT.size
    if kind == message.INVOKE and count == scalars.count(word) and end <= len(raw):
        arguments = message.ARGUMENT.iter_unpack(raw[message.HEAD.size : end])
        yield from (one for one in islice(arguments, scalars.split(word).buffers) if one[1])


def _message(packet: bytes) -> tuple[int, int, int, int, bytes]:
    """Kind, word and first two numbers of a packet, and its text; zeros if there is no packet."""
    if len(packet) < HEAD.size:
        return 0, 0, 0, 0, b""
    kind, word, a, b, *_ = HEAD.unpack_from(packet)
    return kind, word, a, b, packet[HEAD.size :]

"""What a memory fault was, by the record that the kernel leaves of it for the handler."""

from __future__ import annotations

import ctypes
import mmap
import struct
import subprocess
import sys

import pytest

from hbrt.ddr import faults
from hbrt.ddr.private_pages import mprotect
from tests.limits import PATIENCE_S

# Of arm64 (asm/sigcontext.h): flags, link, stack and signal mask in front of the registers, which end on 16 bytes; then
# records of a magic number, a size and their contents, the last of which has neither.
BEFORE_RECORDS = 176 + 8 * (1 + 31 + 3) + 8
FLOATING_POINT = struct.pack("<II", 0x46508001, 528).ljust(528, b"\xff")
DATA_ABORT_OF_A_PERMISSION = 0x24 << 26 | 1 << 25 | 0b001111


def records_of_arm(syndrome: int | None) -> bytes:
    found = b"" if syndrome is None else struct.pack("<IIQ", 0x45535201, 16, syndrome)
    return bytes(BEFORE_RECORDS) + FLOATING_POINT + found + bytes(8)


@pytest.mark.parametrize(
    ("machine", "raw", "expected"),
    [
        ("aarch64", records_of_arm(DATA_ABORT_OF_A_PERMISSION | 1 << 6), True),
        ("aarch64", records_of_arm(DATA_ABORT_OF_A_PERMISSION), False),
        ("aarch64", records_of_arm(None), None),
        ("x86_64", bytes(192) + struct.pack("<Q", 0b110), True),
        ("x86_64", bytes(192) + struct.pack("<Q", 0b100), False),
        ("riscv64", bytes(1024), None),
    ],
)
def test_a_write_is_told_from_a_read(
    machine: str,
    raw: bytes,
    expected: bool | None,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(faults, "_machine", machine)
    context = ctypes.create_string_buffer(raw, len(raw))
    assert faults._is_write(ctypes.addressof(context)) is expected


def test_a_real_fault_of_this_machine_says_which_it_was() -> None:
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    told: list[tuple[int, bool | None]] = []

    def mend(at: int, is_write: bool | None) -> bool:  # noqa: FBT001 - as faults calls it
        told.append((at - address, is_write))
        return not mprotect(address, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)

    faults.on_fault(mend)
    try:
        for at, use in ((8, lambda: memory[8]), (9, lambda: memory.__setitem__(9, 1))):
            mprotect(address, mmap.PAGESIZE, 0)
            use()
            assert told.pop() == (at, at == 9)
    finally:
        faults.no_fault(mend)


SURVIVES = """
import ctypes, mmap, signal
from hbrt.ddr import faults
from hbrt.ddr.private_pages import mprotect

memory = mmap.mmap(-1, mmap.PAGESIZE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
seen = []

def mend(by):
    seen.append(by)
    return not mprotect(address, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)

def touch():
    mprotect(address, mmap.PAGESIZE, 0)
    memory[0]

older = faults._Handler(lambda *_: mend("older"))
action = faults._Action(handler=ctypes.cast(older, ctypes.c_void_p), flags=faults._FLAG_SIGINFO)
faults._sigaction(signal.SIGSEGV, ctypes.byref(action), None)
refuse = lambda at, is_write: seen.append("asked")
faults.on_fault(refuse)
touch()  # nobody repairs it: the signal goes back to the older handler, which does
touch()
faults.on_fault(refuse)
touch()
faults.on_fault(lambda at, is_write: mend("newer"))
touch()
print(*seen)
"""


def test_faults_come_again_after_one_that_an_older_handler_repaired() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SURVIVES], check=True, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert ended.stdout.split() == ["asked", "older", "older", "asked", "older", "newer"], ended.stderr

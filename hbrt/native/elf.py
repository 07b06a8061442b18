"""The CPU that a library is for, from its ELF header."""

from __future__ import annotations

from pathlib import Path
from typing import Final

NAMES: Final = {3: "i386", 40: "arm", 62: "x86_64", 164: "hexagon", 183: "aarch64", 243: "riscv64"}
_MAGIC: Final = b"\x7fELF"
_SIZE: Final = 20


def machine_of(file: Path) -> int:
    """Return e_machine of a library, a program, or an archive's first member; 0 of any other file.

    Raises:
        OSError: it cannot be read.
    """
    with file.open("rb") as opened:
        data = opened.read(_SIZE)
        if data.startswith(b"!<arch>"):
            data += opened.read()
    header = data[max(data.find(_MAGIC), 0) :][:_SIZE]
    if len(header) < _SIZE or not header.startswith(_MAGIC):
        return 0
    return int.from_bytes(header[18:20], "big" if header[5] == 2 else "little")

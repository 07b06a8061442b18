"""Which Python serves libhbrt.so: if the library is not in an environment, a file next to it says so.

Lightweight and independent of the rest of hbrt: native/build.py also runs it.
"""

from __future__ import annotations

import contextlib
import sys
import sysconfig
from pathlib import Path

RECORD = Path(__file__).resolve().parent / "lib" / "python.cfg"


def write_record() -> None:
    """Record this Python and, if it has one, its shared library.

    Raises:
        OSError: the folder is not writable.
    """
    name = str(sysconfig.get_config_var("INSTSONAME") or "")
    library = Path(str(sysconfig.get_config_var("LIBDIR") or "/"), name)
    found = library if ".so" in name and library.is_file() else ""
    text = f"executable = {sys.executable}\nlibrary = {found}\n"
    if not RECORD.is_file() or RECORD.read_text(encoding="utf-8") != text:
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(text, encoding="utf-8")


def remember_python() -> None:
    """Make programs use this Python if the recorded one is gone, or there is no record."""
    with contextlib.suppress(OSError):  # a read-only installation finds its Python by its location
        lines = RECORD.read_text(encoding="utf-8").splitlines() if RECORD.is_file() else []
        named = next((line.partition("= ")[2] for line in lines if line.startswith("executable")), "")
        if not named or not Path(named).exists():
            write_record()

"""Which Python serves libhbrt.so: where the library does not lie in an environment itself, a file beside it says so.

Light, and without the rest of hbrt: native/build.py runs it, too.
"""

from __future__ import annotations

import contextlib
import sys
import sysconfig
from pathlib import Path

RECORD = Path(__file__).resolve().parent / "lib" / "python.cfg"


def write_record(record: Path = RECORD) -> None:
    """Write this Python, and its shared library where it has one.

    Raises:
        OSError: the folder cannot be written.
    """
    name = str(sysconfig.get_config_var("INSTSONAME") or "")
    library = Path(str(sysconfig.get_config_var("LIBDIR") or "/"), name)
    found = library if ".so" in name and library.is_file() else ""
    text = f"executable = {sys.executable}\nlibrary = {found}\n"
    if not record.is_file() or record.read_text(encoding="utf-8") != text:
        record.parent.mkdir(exist_ok=True)
        record.write_text(text, encoding="utf-8")


def remember_python() -> None:
    """Have programs use this Python, when the one that the record names is gone, or there is no record."""
    with contextlib.suppress(OSError):  # an installation that cannot be written has its Python by its place
        lines = RECORD.read_text(encoding="utf-8").splitlines() if RECORD.is_file() else []
        named = next((line.partition("= ")[2] for line in lines if line.startswith("executable")), "")
        if not named or not Path(named).exists():
            write_record()

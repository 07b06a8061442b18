"""Whether this process uses the mailbox in C, and the module that has it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from hbrt import settings
from hbrt.ddr.layout import LAYOUT_VERSION
from hbrt.native.files import is_stale


class NativeMissingError(ImportError):
    """HBRT_NATIVE=1 asks for the mailbox in C, which cannot be loaded; the message has the reason."""


def native() -> tuple[ModuleType | None, str]:
    """The module with the mailbox in C, None where Python does its work; and a sentence with the reason.

    Raises:
        NativeMissingError: HBRT_NATIVE is 1, and there is none.
    """
    wanted = settings.choice("HBRT_NATIVE")
    if wanted == "0":
        return None, "in Python: HBRT_NATIVE is 0"
    try:
        module = import_module("hbrt.native._mailbox")
        spoken = module.lib.hbrt_layout_version()
        if is_stale(str(module.__file__)):
            why = "it is older than its sources"
        elif spoken != LAYOUT_VERSION:
            why = f"it was built for layout version {spoken}, and this is version {LAYOUT_VERSION}"
        else:
            return module, "in C"
    except ImportError as error:
        why = f"it does not load ({error})"
    if wanted == "1":
        raise NativeMissingError(
            f"HBRT_NATIVE is 1, and the mailbox in C cannot be used: {why}. Install a C compiler, then hbrt anew (in a "
            "clone: make native)."
        )
    return None, f"in Python; the one in C cannot be used: {why}"

"""The module that has the mailbox in C."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

from hbrt.ddr.layout import LAYOUT_VERSION
from hbrt.native.files import is_stale

# Answers of native/mailbox/mailbox.h that are no handle, slot or state.
ASK, NO_SLOT, TIMEOUT, INTERRUPTED, GONE, ASKED, NOTHING, LOCKED, CONTROL, RAN = range(0, -10, -1)
UNKNOWN_OWNER = -11


class NativeMissingError(ImportError):
    """The mailbox in C cannot be used; the message has the reason."""


@cache
def native() -> ModuleType:
    """The module with the mailbox in C.

    Raises:
        NativeMissingError: it cannot be used; says why, and what to do.
    """
    try:
        module = import_module("hbrt.native._mailbox")
    except ImportError as error:
        why = f"it does not load ({error})"
    else:
        spoken = module.lib.hbrt_layout_version()
        if is_stale(str(module.__file__)):
            why = "it is older than its sources"
        elif spoken != LAYOUT_VERSION:
            why = f"it was built for layout version {spoken}, and this is version {LAYOUT_VERSION}"
        else:
            return module
    raise NativeMissingError(f"The mailbox in C cannot be used: {why}. Install hbrt anew (in a clone: make native).")

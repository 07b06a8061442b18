"""Loads the module with the C mailbox."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

from hbrt.ddr.layout import LAYOUT_VERSION
from hbrt.native.files import is_stale

# Results of native/mailbox/mailbox.h that are not a handle, slot or state.
ASK, NO_SLOT, TIMEOUT, INTERRUPTED, GONE, ASKED, NOTHING, LOCKED, CONTROL, RAN = range(0, -10, -1)
UNKNOWN_OWNER = -11


class NativeMissingError(ImportError):
    """The C mailbox cannot be used; the message says why."""


@cache
def native() -> ModuleType:
    """Return the module with the C mailbox.

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
            why = f"it was built for layout version {spoken}, but this is version {LAYOUT_VERSION}"
        else:
            return module
    raise NativeMissingError(f"The C mailbox cannot be used: {why}. Reinstall hbrt (in a clone: make native).")

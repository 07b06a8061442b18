"""Distributions beside the core, in ``packages/``: what they add is found by entry points, so the core imports none.

A guest announces verbs (``hbrt.commands``), C names of libhbrt.so (``hbrt.c_names``), modules behind names of the core
(``hbrt.modules``), what a core's process runs for it (``hbrt.skeletons``) and how a recording's calls of a command are
replayed (``hbrt.replays``).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hbrt.lazy import how_to_install

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_DISTRIBUTION_OF: Final = {"fastrpc": "hbrt-fastrpc", "hbrt_farm": "hbrt-farm", "rknn_api": "hbrt-rknn"}
CORE: Final = ("arm_client", "dsp_server", "hbrt")
_ROOT: Final = Path(__file__).resolve().parents[2]

PACKAGES: Final = frozenset({*CORE, *_DISTRIBUTION_OF})
"""The packages that programs import, of the core and of guests."""


class MissingGuestError(ImportError):
    """A guest is needed that is not installed, or not with what is needed; the message says which extra brings it."""

    def __init__(self, subject: str, extra: str) -> None:
        lack = "installed without it; install it again" if _is_installed(f"hbrt-{extra}") else "not installed"
        super().__init__(f"{subject} needs hbrt-{extra}, which is {lack}: {how_to_install(extra, is_guest=True)}.")


def _is_installed(distribution: str) -> bool:
    from importlib import metadata

    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


@cache
def _entries(group: str) -> dict[str, EntryPoint]:
    """What installed packages announce in a group, by name. Once a process: all metadata is read for it."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=group)}


def targets(group: str) -> dict[str, str]:
    """Return what installed packages announce in a group: name -> ``module:attribute``."""
    return {name: entry.value for name, entry in _entries(group).items()}


def load(group: str, name: str, subject: str, extra: str) -> Any:
    """Load what a guest announces.

    Args:
        group: Group of entry points, such as ``hbrt.c_names``.
        name: Name of the entry point.
        subject: What needs it, the beginning of the sentence where it is missing.
        extra: The extra that brings the guest.

    Raises:
        MissingGuestError: the guest is not installed, or announces no such name.
    """
    entry = _entries(group).get(name)
    if entry is None:
        raise MissingGuestError(subject, extra)
    return entry.load()


def folders(*but: str) -> list[str]:
    """Return the folders of ``PACKAGES``, each with a slash at its end: in a wheel and in a clone.

    Args:
        but: Packages to leave out.
    """
    places = [_ROOT / name for name in PACKAGES.difference(but)]
    places += [_ROOT / "packages" / held / "src" / name for name, held in _DISTRIBUTION_OF.items() if name not in but]
    return sorted(f"{place}/" for place in places)

"""Distributions besides the core, in ``packages/``, found by entry points, so that the core imports none.

A guest registers verbs (``hbrt.commands``), C names (``hbrt.c_names``), modules behind the core's names
(``hbrt.modules``), code for a core's process (``hbrt.skeletons``), and replay of recorded calls of a command
(``hbrt.replays``). The package that registers C names has a folder ``native``, with their headers and libraries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hbrt.lazy import how_to_install

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_DISTRIBUTION_OF: Final = {"fastrpc": "hbrt-fastrpc", "hbrt_farm": "hbrt-farm", "rknn_api": "hbrt-rknn"}
_BROUGHT: Final = {
    "rknn": re.compile(r"(?:rknn_\w+|im2d\w*|rga|drmrga|Rga(?:Api|Utils)|RockchipRga)\.h(?:pp)?|lib(?:rknn\w+|rga)"),
    "fastrpc": re.compile(
        r"(?:remote|rpcmem|dspqueue|worker_pool|hbrt_skeleton|domain_default|dsp_capabilities_utils|hexagon_sim_timer"
        r"|sysmon_cachelock|AEE\w+|HAP_\w+|qurt\w*)\.h|lib(?:[acs]dsprpc|rpcmem|log)"
    ),
    "rdk": re.compile(r"sp_(?:bpu|codec|display|sys|vio)\.h|libspcdev"),
}
"""Extra -> the headers and libraries in C that programs have from its guest."""
MODULES: Final = {
    **dict.fromkeys(("rknn", "rknnlite"), "rknn"),
    **dict.fromkeys(
        (
            "Hobot", "bpu_infer_lib", "bpu_infer_lib_x3", "bpu_infer_lib_x5", "hbm_runtime", "hobot_dnn",
            "hobot_dnn_rdkx5", "hobot_spdev", "hobot_vio", "hobot_vio_rdkx5", "horizon_tc_ui", "libsrcampy",
            "pyCauchyKesai",
        ),
        "rdk",
    ),
}  # fmt: skip
"""The vendors' Python modules -> the extra whose guest brings them."""
WITH_C_NAMES: Final = ("fastrpc", "hobot_vio", "rknn_api")
"""The packages behind ``hbrt.c_names``: looked up by name, which takes a hundredth of the time of reading metadata."""
CORE: Final = ("arm_client", "dsp_server", "hbrt")
_ROOT: Final = Path(__file__).resolve().parents[2]

PACKAGES: Final = frozenset({*CORE, *_DISTRIBUTION_OF})
"""The packages that programs import, from the core and guests."""


class MissingGuestError(ImportError):
    """A required guest is not installed, or lacks something; the message names the extra to install."""

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
    """Return a group's entry points of installed packages, by name. Cached, since it reads all metadata."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=group)}


@cache
def native_folders() -> list[Path]:
    """Return the folders of the installed guests' parts in C: ``native`` in each package that has C names."""
    from importlib.util import find_spec

    places = [
        place for one in WITH_C_NAMES if (spec := find_spec(one)) for place in spec.submodule_search_locations or ()
    ]
    return [folder for place in places if (folder := Path(place) / "native").is_dir()]


def extra_of(name: str) -> str | None:
    """Return the extra whose guest brings a header (``im2d.h``), library (``librga``) or module (``rknn.api``).

    None if no guest does.
    """
    if not name.endswith((".h", ".hpp")) and (extra := MODULES.get(name.partition(".")[0])):
        return extra
    return next((extra for extra, brought in _BROUGHT.items() if brought.fullmatch(name)), None)


def check_brought(names: Iterable[str]) -> None:
    """Check that the guests that bring some headers, libraries and modules, as in ``extra_of``, are installed.

    Raises:
        MissingGuestError: one is not.
    """
    for name in names:
        extra = extra_of(name)
        if extra and extra not in _entries("hbrt.c_names"):
            raise MissingGuestError(name, extra)


def targets(group: str) -> dict[str, str]:
    """Return a group's entry points of installed packages: name -> ``module:attribute``."""
    return {name: entry.value for name, entry in _entries(group).items()}


def load(group: str, name: str, subject: str, extra: str) -> Any:
    """Load a guest's entry point.

    Args:
        group: Group of entry points, such as ``hbrt.c_names``.
        name: Name of the entry point.
        subject: What needs it; begins the message if it is missing.
        extra: The extra that installs the guest.

    Raises:
        MissingGuestError: the guest is not installed, or has no such entry point.
    """
    entry = _entries(group).get(name)
    if entry is None:
        raise MissingGuestError(subject, extra)
    return entry.load()


def folders(*but: str) -> list[str]:
    """Return the folders of ``PACKAGES``, each with a trailing slash, for a wheel and a clone.

    Args:
        but: Packages to exclude.
    """
    places = [_ROOT / name for name in PACKAGES.difference(but)]
    places += [_ROOT / "packages" / held / "src" / name for name, held in _DISTRIBUTION_OF.items() if name not in but]
    return sorted(f"{place}/" for place in places)

"""Libraries librkcst_NAME.so, each with one op: found in their folder, checked before they are loaded.

Source: RKNN SDK advanced guide (chapter 5), 5.5.4.4
Emulator: HBRT_RKNN_PLUGINS names another folder; RKNNLite uses them as well.
"""

from __future__ import annotations

import ctypes
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hbrt import settings
from hbrt.models.spec.graph import Graph
from hbrt.native.elf import NAMES, machine_of
from rknn_api.errors import RknnError, RknnStatus, invalid_model, invalid_parameter
from rknn_api.run.c_ops import COp, checked
from rknn_api.run.custom_ops import CustomOps
from rknn_api.types import rknn_custom_op

if TYPE_CHECKING:
    from rknn_api.container import Container

ENTRY: Final = "get_rknn_custom_op"
_PREFIX, _SUFFIX = "librkcst_", ".so"
_ALIKE: Final = {"arm64": "aarch64", "amd64": "x86_64", "armv7l": "arm", "i686": "i386"}


def folder() -> Path:
    """The folder to search for plug-ins."""
    return Path(settings.text("HBRT_RKNN_PLUGINS"))


def found(where: Path) -> list[Path]:
    """The plug-ins of a folder, in order."""
    try:
        return sorted(one for one in where.iterdir() if _is_plugin(one.name) and one.is_file())
    except OSError:
        return []


def _is_plugin(name: str) -> bool:
    return len(name) > len(_PREFIX) + len(_SUFFIX) and name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def load(path: Path) -> tuple[rknn_custom_op, ctypes.CDLL]:
    """The op of a plug-in.

    Raises:
        RknnError: RKNN_ERR_FAIL: why it cannot be used.
    """
    try:
        number = machine_of(path)
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}.") from None
    here = _ALIKE.get(platform.machine().lower(), platform.machine().lower())
    machine = NAMES.get(number, f"CPU {number}")
    if not number:
        raise _refused(path, "is not a shared library; build it with 'hbrt cc -shared -fPIC'.")
    if machine != here:
        raise _refused(
            path, f"is built for {machine}, but this machine is {here}: build it here with 'hbrt cc -shared -fPIC'."
        )
    try:
        library = ctypes.CDLL(str(path), os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        raise _refused(
            path, f"cannot be loaded: {error}; libraries that it needs are searched for in LD_LIBRARY_PATH."
        ) from None
    try:
        entry = library[ENTRY]
    except AttributeError:
        raise _refused(path, f'has no function {ENTRY}; in C++ declare it extern "C".') from None
    entry.restype, entry.argtypes = ctypes.POINTER(rknn_custom_op), ()
    pointer = entry()
    if not pointer:
        raise _refused(path, f"returns NULL from {ENTRY}; it must return the address of a rknn_custom_op.")
    return pointer.contents, library


def add(ops: CustomOps, container: Container) -> list[str]:
    """Register the plug-ins of a model's op types; ``CustomOps.close`` calls their destroy.

    Args:
        ops: Receives them.
        container: The model.

    Returns:
        Why plug-ins were not used: one message each.
    """
    problems, wanted = [], container.metadata.custom_ops
    for path in found(folder()):
        try:
            op, library = load(path)
            name = checked(op, wanted)
            if name in ops:
                raise invalid_parameter(f"another plug-in has {name!r} as well.")
            made = COp(op, name, Graph(container.proto()), library)
        except RknnError as error:
            problems.append(error.text if error.text.startswith(str(path)) else f"{path}: {error.text}")
        else:
            ops.add(name, made, made.layer, made.close)
    return problems


def required(container: Container) -> CustomOps:
    """The plug-ins of all op types of a model.

    Raises:
        RknnError: RKNN_ERR_MODEL_INVALID: an op type has no plug-in; says which, and why each existing plug-in is not
            used.
    """
    ops, wanted = CustomOps(), container.metadata.custom_ops
    problems = add(ops, container) if wanted else []
    if missing := [name for name in wanted if name not in ops]:
        ops.close()
        raise invalid_model(
            f"The model has the custom ops {', '.join(missing)}, but no plug-in {_PREFIX}NAME{_SUFFIX} in {folder()} "
            f"has them; HBRT_RKNN_PLUGINS sets another folder. {' '.join(problems)}".rstrip()
        )
    return ops


def _refused(path: Path, why: str) -> RknnError:
    return RknnError(RknnStatus.RKNN_ERR_FAIL, f"{path} {why}")

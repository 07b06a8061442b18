"""Builds the C parts of a distribution into its wheel, or in place; asks for a C compiler where there is none."""

from __future__ import annotations

import runpy
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

CORE = Path(__file__).resolve().parent


def _tag(*, is_core: bool) -> str:
    """The tag of this platform's wheel: one for all versions of CPython, since the module has its stable interface."""
    inferred = next(tag for tag in sys_tags() if not tag.platform.startswith(("manylinux", "musllinux")))
    if not is_core:
        return f"py3-none-{inferred.platform}"
    if sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return f"cp311-abi3-{inferred.platform}"
    return str(inferred)


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # its parameter is not public
    """Calls native/build.py."""

    def _builder(self) -> dict[str, Any]:
        return runpy.run_path(str(CORE / "native" / "build.py"))

    def dependencies(self) -> list[str]:
        """The compiler in a wheel, where this machine has no other."""
        pins: list[str] = self._builder()["fallback"]()
        return pins

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface's
        """Build, and mark the wheel as one for this platform."""
        root = Path(self.root).resolve()
        self._builder()["build"]([root])
        build_data["artifacts"].append("/native/include/dsp/hbrt/ivp/names.h")
        build_data["pure_python"] = False
        build_data["tag"] = _tag(is_core=root == CORE)
        for built in root.glob("hbrt/native/**/*.so" if root == CORE else "*/*/native/lib/*.so"):
            build_data["artifacts"].append(f"/{built.relative_to(root).as_posix()}")

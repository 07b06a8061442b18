"""Builds the C parts into a wheel, or in place for an editable install; asks for a C compiler where there is none."""

from __future__ import annotations

import runpy
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags


def _tag() -> str:
    """The tag of this platform's wheel: one for all versions of CPython, since the module has its stable interface."""
    inferred = next(tag for tag in sys_tags() if not tag.platform.startswith(("manylinux", "musllinux")))
    if sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return f"cp311-abi3-{inferred.platform}"
    return str(inferred)


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # its parameter is not public
    """Calls native/build.py."""

    def _builder(self) -> dict[str, Any]:
        return runpy.run_path(str(Path(self.root) / "native" / "build.py"))

    def dependencies(self) -> list[str]:
        """The compiler in a wheel, where this machine has no other."""
        pins: list[str] = self._builder()["fallback"]()
        return pins

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface's
        """Build, and mark the wheel as one for this platform."""
        self._builder()["build"]()
        build_data["artifacts"].append("/native/include/dsp/hbrt/ivp/names.h")
        build_data["pure_python"] = False
        build_data["tag"] = _tag()
        root = Path(self.root)
        for built in (root / "hbrt" / "native").rglob("*.so"):
            build_data["artifacts"].append(f"/{built.relative_to(root).as_posix()}")

"""Builds the C parts into a wheel, or in place for an editable install; asks for a C compiler where there is none."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


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
        build_data["infer_tag"] = True
        root = Path(self.root)
        for built in (root / "hbrt" / "native").rglob("*.so"):
            build_data["artifacts"].append(f"/{built.relative_to(root).as_posix()}")

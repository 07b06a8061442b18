"""Builds the C parts into a wheel, or in place for an editable install; where no C compiler is, does without them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # its parameter is not public
    """Calls native/build.py."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface's
        """Build, and mark the wheel as one for this platform."""
        root = Path(self.root)
        build = runpy.run_path(str(root / "native" / "build.py"))["build"]
        build_data["artifacts"].append("/native/include/dsp/hbrt/ivp/names.h")
        if not build():
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for built in (root / "hbrt" / "native").rglob("*.so"):
            build_data["artifacts"].append(f"/{built.relative_to(root).as_posix()}")

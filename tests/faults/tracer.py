"""Death at a line: a trace function that ends, or stops, its process just before a line whose token it finds.

The code under test knows nothing of it. Lines of C have the same by native/mailbox/kill.h, in a build of the mailbox
that such a process loads in place of the product's. A token is a file in ``$HBRT_FAULTS_DIR``, named for the point and
for how to die; taking it is renaming it, so that exactly one process dies of one token, and its successor continues.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from hbrt.mailbox.native import native
from tests.faults.points import SOURCES, code_of, everywhere, line_of, of

DIRECTORY = "HBRT_FAULTS_DIR"
MODULE = "HBRT_FAULTS_MODULE"
EVERYWHERE = "HBRT_FAULTS_EVERYWHERE"
HOW = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


class Tracer:
    """Watches the functions in which an actor's points lie."""

    def __init__(self, actor: str, directory: str) -> None:
        self._directory = directory
        self._points: dict[CodeType, dict[int, list[str]]] = {}
        for point in [*of(actor), *(everywhere(actor) if os.environ.get(EVERYWHERE) else ())]:
            if point.is_in_c:
                continue
            lines = self._points.setdefault(code_of(point.target), {})
            lines.setdefault(line_of(point), []).append(point.key)

    def on_call(self, frame: FrameType, event: str, arg: object) -> Any:
        """Trace function: follow the watched functions alone."""
        return self.on_line if frame.f_code in self._points else None

    def on_line(self, frame: FrameType, event: str, arg: object) -> Any:
        """Local trace function: die when there is a token."""
        if event == "line":
            for key in self._points[frame.f_code].get(frame.f_lineno, ()):
                self._reach(key)
        return self.on_line

    def _reach(self, key: str) -> None:
        for how, number in HOW.items():
            token = f"{self._directory}/{key}.{how}"
            try:
                os.rename(token, f"{token}.taken")  # noqa: PTH104 - a trace function had better be short
            except FileNotFoundError:
                continue
            os.kill(os.getpid(), number)


def build(module: Path) -> None:
    """Build the mailbox's module with its kill points."""
    builder = runpy.run_path(str(SOURCES.parent / "build.py"))
    builder["build_module"](builder["compiler"](), module, "-DHBRT_KILL_POINTS")


def install(actor: str) -> None:
    """Watch this thread from the next call on, and the mailbox in C; without a directory of tokens, do nothing."""
    directory = os.environ.get(DIRECTORY)
    if directory:
        name = "hbrt.native._mailbox"
        spec = spec_from_file_location(name, os.environ[MODULE])
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
        native.cache_clear()  # the daemon, of which a core is a fork here, has used the other module
        sys.settrace(Tracer(actor, directory).on_call)

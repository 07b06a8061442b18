"""``hbrt run defects``: programs with a mistake each, beside their corrected twins, and what the checks say of both.

A program is one file of ``samples/defects``. It has ``wrong()`` and ``corrected()``, and says what names its mistake:
``NAMED``, a kind of finding, or ``SAYS``, words of the sentence where no finding comes of it. ``OPS`` are its ops.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hbrt import settings
from hbrt.board.launch import DaemonConfig, launch
from hbrt.board.paths import private_directory
from hbrt.findings.record import KINDS
from hbrt.samples_dir import samples_dir

GROUP = "defects"
FAULT = "fault"
"""NAMED of a program that a fault ends, with a sentence on the block that it had freed."""
_SHARED = ("calls", "image")
_FAULT_SAYS = "was freed at"


class Defect(NamedTuple):
    """One program: its name, its file, its mistake in a sentence, and what names it."""

    name: str
    file: Path
    about: str
    named: str
    says: str


class Run(NamedTuple):
    """What came of one of its two functions: findings, all that it printed, its exit code."""

    findings: list[dict[str, Any]]
    output: str
    code: int

    @property
    def said(self) -> str:
        """All that a user sees."""
        return "\n".join([self.output, *(found["text"] for found in self.findings)])


class Verdict(NamedTuple):
    """Whether a mistake is named with file and line, and its twin is free of findings; and the sentences."""

    defect: Defect
    sentence: str
    twin: str

    @property
    def is_good(self) -> bool:
        """Whether both hold."""
        return bool(self.sentence) and not self.twin

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "defect": self.defect.name,
            "file": str(self.defect.file),
            "about": self.defect.about,
            "named": self.defect.named or None,
            "sentence": self.sentence or None,
            "twin": self.twin or None,
            "passed": self.is_good,
        }


def all_defects() -> dict[str, Defect]:
    """The programs by name."""
    files = sorted((samples_dir() / GROUP).glob("*.py"))
    return {file.stem: _read(file) for file in files if file.stem not in _SHARED}


def judge(defect: Defect, directory: str, timeout_s: float) -> Verdict:
    """Run both functions of a program on a board, each in a process of its own.

    Args:
        defect: The program.
        directory: Of the board.
        timeout_s: For each; one that takes longer is ended, and counts as one whose mistake is not named.
    """
    wrong, twin = (_run(defect, function, directory, timeout_s) for function in ("wrong", "corrected"))
    return Verdict(defect, naming(defect, wrong), spoiling(twin))


def naming(defect: Defect, run: Run) -> str:
    """The sentence that names a mistake with file and line; empty when there is none."""
    words = _FAULT_SAYS if defect.named == FAULT else defect.says
    if words:
        sentences = [line for line in run.said.splitlines() if words in line]
    else:
        sentences = [found["text"] for found in run.findings if found["kind"] == defect.named]
    site = re.compile(rf"{re.escape(str(defect.file.parent))}/\w+\.py:\d+")
    return next((sentence for sentence in sentences if site.search(sentence)), "")


def spoiling(twin: Run) -> str:
    """Why a corrected program is not clean; empty for one that is."""
    if twin.findings:
        return "; ".join(f"{found['kind']}: {found['text']}" for found in twin.findings)
    if twin.code:
        return f"It ended with exit code {twin.code}. {twin.output}".rstrip()
    return ""


@contextmanager
def watched_board() -> Iterator[str]:
    """A board that watches everything and serves the ops of the defects; yields its directory."""
    directory = private_directory()
    os.environ["HBRT_CHECK"] = "all"  # the daemon's and the programs'
    config = DaemonConfig(
        directory=str(directory),
        image=str(samples_dir() / GROUP / "image.py"),
        cores=settings.integer("HBRT_CORES"),
        ddr_bytes=settings.size_bytes("HBRT_DDR"),
        is_private=True,
    )
    daemon = launch(config)
    try:
        yield str(directory)
    finally:
        os.close(daemon.lifeline)
        os.waitpid(daemon.pid, 0)


def _read(file: Path) -> Defect:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    values: dict[str, str] = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    about = (ast.get_docstring(tree) or "").partition("\n\n")[0].replace("\n", " ")
    named = values.get("NAMED", "")
    if named and named != FAULT and named not in KINDS:
        raise ValueError(f"{file} says NAMED = {named!r}, which is no kind of finding.")
    return Defect(file.stem, file, about, named, values.get("SAYS", ""))


def _run(defect: Defect, function: str, directory: str, timeout_s: float) -> Run:
    read, write = os.pipe()
    environment = {**os.environ, "HBRT_BOARD": directory, "HBRT_AUTOSTART": "0", "HB_DSP_RPC_MODE": "direct"}
    command = [sys.executable, "-P", "-m", "arm_client.commands.run.defect", str(defect.file), function, str(write)]
    with os.fdopen(read, "rb") as answer, tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, env=environment, pass_fds=[write]
        )
        os.close(write)
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        printed.seek(0)
        os.set_blocking(answer.fileno(), False)
        raw = answer.read() or b"[]"
        return Run(json.loads(raw), printed.read().decode("utf-8", "replace"), code)

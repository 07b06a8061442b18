"""``hbrt run defects``: programs with one mistake each, their corrected twins, and the findings of both.

A program is one file of ``samples/defects``. It has ``wrong()`` and ``corrected()``, and declares how its mistake is
reported. ``NAMED`` is a kind of finding, or several. A colon and words of the message follow a kind where the kind
alone is not enough. ``SAYS``, for a mistake without a finding, has words of the program's output. ``OPS`` are its ops.
"""

from __future__ import annotations

import ast
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from arm_client.commands.run.forks import Forks
from hbrt.board.paths import BoardPaths
from hbrt.board.private import private_daemon
from hbrt.control.ask import ask
from hbrt.findings.record import KINDS
from hbrt.samples_dir import samples_dir

GROUP = "defects"
_SHARED = ("calls", "image")
_LOADED = ("numpy", "arm_client.client", "arm_client.sample", "arm_client.strict.checker", "hbrt.attach.tasks")
_POLL_SECONDS = 0.01


class Defect(NamedTuple):
    """One program: its name, its file, its mistake in a sentence, and the findings to expect."""

    name: str
    file: Path
    about: str
    named: tuple[str, ...]
    says: str


class Run(NamedTuple):
    """The run of one of its two functions: findings, output, exit code."""

    findings: list[dict[str, Any]]
    output: str
    code: int


class Verdict(NamedTuple):
    """Whether the mistakes of a program are named with file and line, and its twin is free of findings.

    Attributes:
        defect: The program.
        sentences: The message that detects each mistake; empty for an undetected one.
        twin: Why its twin is not clean; empty if it is.
    """

    defect: Defect
    sentences: tuple[str, ...]
    twin: str

    @property
    def is_good(self) -> bool:
        """Whether both hold."""
        return all(self.sentences) and not self.twin

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "defect": self.defect.name,
            "file": str(self.defect.file),
            "about": self.defect.about,
            "named": list(self.defect.named),
            "sentences": list(self.sentences),
            "twin": self.twin or None,
            "passed": self.is_good,
        }


def all_defects() -> dict[str, Defect]:
    """The programs by name."""
    files = sorted((samples_dir() / GROUP).glob("*.py"))
    return {file.stem: _read(file) for file in files if file.stem not in _SHARED}


def judge(defect: Defect, board: BoardPaths, forks: Forks, timeout_s: float) -> Verdict:
    """Run both functions of a program on a board, each in its own process.

    Args:
        defect: The program.
        board: Where; see ``watching``.
        forks: Runs it.
        timeout_s: For each; a function that takes longer is killed, and its mistake counts as not named.
    """
    wrong, twin = (_run(defect, function, board, forks, timeout_s) for function in ("wrong", "corrected"))
    return Verdict(defect, naming(defect, wrong), spoiling(twin))


def naming(defect: Defect, run: Run) -> tuple[str, ...]:
    """The sentences that name the mistakes of a program with file and line; an empty one for a mistake without one."""
    site = re.compile(rf"{re.escape(str(defect.file.parent))}/\w+\.py:\d+")

    def first(sentences: Iterable[str]) -> str:
        return next((sentence for sentence in sentences if site.search(sentence)), "")

    if defect.says:
        return (first(line for line in run.output.splitlines() if defect.says in line),)
    return tuple(first(_telling(named, run.findings)) for named in defect.named)


def _telling(named: str, findings: list[dict[str, Any]]) -> Iterator[str]:
    kind, _, words = named.partition(": ")
    for found in findings:
        if found["kind"] == kind and words in found["text"]:
            sites = [place["site"] for place in found["places"] if "site" in place]
            yield " ".join([found["text"], *sites])


def spoiling(twin: Run) -> str:
    """Why a corrected program is not clean; empty if it is."""
    if twin.findings:
        return "; ".join(f"{found['kind']}: {found['text']}" for found in twin.findings)
    if twin.code:
        return f"It exited with code {twin.code}. {twin.output}".rstrip()
    return ""


def kinds_of(defect: Defect) -> list[str]:
    """The kinds of findings that name its mistakes, each once."""
    return list(dict.fromkeys(named.partition(": ")[0] for named in defect.named))


@contextmanager
def watching() -> Iterator[tuple[BoardPaths, Forks]]:
    """A board with all checks that serves the ops of the defects, and the process that runs them on it."""
    os.environ["HBRT_CHECK"] = "all,advice"  # the daemon's and the programs'
    with private_daemon(samples_dir() / GROUP / "image.py") as board, Forks(*_LOADED) as forks:
        yield board, forks


def _read(file: Path) -> Defect:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in {"NAMED", "SAYS"}
    }
    named = (values["NAMED"],) if isinstance(values.get("NAMED"), str) else values.get("NAMED", ())
    about = (ast.get_docstring(tree) or "").partition("\n\n")[0].replace("\n", " ")
    if unknown := {one.partition(": ")[0] for one in named} - set(KINDS):
        raise ValueError(f"{file} says NAMED = {named!r}; {', '.join(unknown)} is not a kind of finding.")
    return Defect(file.stem, file, about, named, values.get("SAYS", ""))


def _run(defect: Defect, function: str, board: BoardPaths, forks: Forks, timeout_s: float) -> Run:
    ask(board, "forget")
    environment = {"HBRT_BOARD": str(board.path), "HBRT_AUTOSTART": "0", "HB_DSP_RPC_MODE": "direct"}
    ended = forks.run(str(defect.file), (), environment, timeout_s, function)
    status = ask(board, "status")
    until = time.monotonic() + timeout_s
    while status["clients"] and time.monotonic() < until:  # its leaks are found when its lease has closed
        time.sleep(_POLL_SECONDS)
        status = ask(board, "status")
    return Run(status["findings"], ended.output, ended.code)

"""Findings of all processes of one program run: an in-memory file that their boards write to.

A run starts with its first process: ``hbrt run``, or a program whose settings request findings (HBRT_SARIF, or
HBRT_CHECK with ``fail``). Its child processes inherit the file's name in the environment, and send it when they attach.
A board holds a shared lock on the file while such a process is attached, and adds that process's findings when its
lease ends for any reason. So the first process has all findings once it gets an exclusive lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hbrt import settings
from hbrt.board.paths import RUN
from hbrt.findings.record import Finding, finding_of, merged
from hbrt.findings.sarif import sarif_of

_NAME = "memfd:hbrt-run"
_POLL_SECONDS = 0.005


class RunRecord:
    """The file of a run, opened by a process that adds findings to it.

    Args:
        path: Its path: ``/proc/PID/fd/NUMBER`` of the run's first process.

    Raises:
        OSError: the run is over, or is not visible from here.
    """

    def __init__(self, path: str) -> None:
        if _NAME not in Path(path).readlink().name:  # that descriptor may be reused by now
            raise FileNotFoundError(path)
        self._path = Path(path)
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)

    def hold(self) -> None:
        """Make the run's first process wait.

        Raises:
            OSError: it is no longer waiting and is about to end.
        """
        fcntl.flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def add(self, findings: Iterable[Finding]) -> None:
        """Add findings of a process; one already present counts once."""
        lines = [json.dumps({"by": os.getpid(), **found.as_dict()}) for found in findings]
        if lines:
            with contextlib.suppress(OSError):  # the first process reports what it cannot write
                os.write(self._fd, ("\n".join(lines) + "\n").encode())
                self.write_sarif()

    @property
    def is_over(self) -> bool:
        """Whether the first process is gone, along with its exit code."""
        return not self._path.exists()

    @property
    def findings(self) -> list[Finding]:
        """Return each mistake of all processes once, the latest last."""
        return self._read()[1]

    def write_sarif(self) -> str:
        """Write everything to the file that HBRT_SARIF named when the run started; returns its name, "" for none.

        Raises:
            OSError: it cannot be written; its ``filename`` is that file.
        """
        size, before = -1, 0
        name = ""
        while size != before:  # two may write at once: one without all findings writes again
            before = os.fstat(self._fd).st_size
            header, findings = self._read()
            name = header["sarif"]
            if name:
                _put(name, json.dumps(sarif_of(findings, header["root"]), indent=1) + "\n")
            size = os.fstat(self._fd).st_size
        return name

    def _read(self) -> tuple[dict[str, str], list[Finding]]:
        header, *lines = os.pread(self._fd, os.fstat(self._fd).st_size, 0).decode().splitlines()
        known: dict[tuple[Any, ...], Finding] = {}
        for line in lines:
            data = json.loads(line)
            found = finding_of(data)
            known[data["by"], found.client, found.fingerprint] = found
        return json.loads(header), merged(known.values())

    def close(self) -> None:
        """Release it."""
        fcntl.flock(self._fd, fcntl.LOCK_UN)  # a forked child may have the descriptor
        os.close(self._fd)


class FirstProcess(RunRecord):
    """The file of a run that this process starts; its child processes write to it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._outer = os.environ.get(RUN)
        made = os.memfd_create(_NAME.removeprefix("memfd:"))
        try:
            super().__init__(path := f"/proc/{self.pid}/fd/{made}")
        except OSError:
            os.close(made)
            raise
        self._made = made
        name = settings.text("HBRT_SARIF").replace("{pid}", str(self.pid))
        header = {"sarif": str(Path(name).absolute()) if name else "", "root": str(Path.cwd())}
        os.write(self._fd, (json.dumps(header) + "\n").encode())
        os.environ[RUN] = path
        with contextlib.suppress(OSError):  # reported at the end
            self.write_sarif()  # not from an earlier run

    def wait(self, most_seconds: float) -> bool:
        """Wait until all boards have added their findings; returns False if one still has a process of the run."""
        until = time.monotonic() + most_seconds
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    return False
                time.sleep(_POLL_SECONDS)
            else:
                return True

    def detach(self) -> None:
        """Exclude processes started from now on from the run."""
        if self._outer is None:
            os.environ.pop(RUN, None)
        else:
            os.environ[RUN] = self._outer
        self.close()
        os.close(self._made)

    def end(self) -> list[Finding]:
        """Add the findings to the run that contains this one, if any; returns them."""
        findings = self.findings
        if self._outer:
            with contextlib.suppress(OSError), contextlib.closing(RunRecord(self._outer)) as outer:
                outer.add(findings)
        return findings


def begun() -> FirstProcess | None:
    """Start a run if the settings request its findings, and this process is not part of one."""
    if not (settings.text("HBRT_SARIF") or is_failing()) or joined() is not None:
        return None
    try:
        return FirstProcess()
    except OSError:  # no descriptor left, or no /proc: this process still reports its own findings
        return None


def is_failing() -> bool:
    """Whether a program must exit with code 1 if there are findings."""
    try:
        return bool(settings.words("HBRT_CHECK") & {"fail", "fail-fast"})
    except settings.BadSettingError:  # reported on attach
        return False


def joined() -> RunRecord | None:
    """Return the run that this process belongs to; None if there is none or it is over."""
    path = os.environ.get(RUN)
    try:
        return RunRecord(path) if path else None
    except OSError:
        return None


def _put(name: str, text: str) -> None:
    path = Path(name)
    if path.is_symlink() or (path.exists() and not path.is_file()):  # /dev/stdout, a pipe
        path.write_text(text, encoding="utf-8")
        return
    from hbrt.recording.format import write_text  # no cost for a program that writes none

    try:
        write_text(path, text)
    except OSError as error:
        error.filename = name
        raise

"""Running a page: its fenced blocks in order, in one shell, as a reader would who follows it.

- A ``bash`` block runs in the page's one shell, so that ``cd``, variables and an activated environment last. It must
  succeed; a block under the comment ``<!-- fails -->`` must fail.
- A ``text`` block after it is what it prints: compared as a whole, runs of blanks as one, ``...`` for anything.
- A block whose first line is a comment of a file name, as ``# NAME`` or ``/* NAME */``, is written to that file.
- Every other block is only there to be read.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

_FENCE = re.compile(r"^(?P<fence>```+)(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"(?:#|/\*|//) ([\w-]+\.(?:py|ini|toml|cc|c|h|txt))(?: \*/)?\n")
FAILS = "<!-- fails -->"
SHELL_TO_RUN = "bash"
OUTPUT = "text"
END_SECONDS = 1.0


class PageError(AssertionError):
    """A block of a page does not do what the page says; names the page's line."""


class Block(NamedTuple):
    """One fenced block: the line of its first line in the page, and whether it is to fail."""

    language: str
    text: str
    line: int
    must_fail: bool

    @property
    def file(self) -> str:
        """Name of the file that it is to be written to; empty for none."""
        found = _FILE.match(self.text)
        return found[1] if found and self.language not in {SHELL_TO_RUN, OUTPUT} else ""


def blocks(page: str) -> list[Block]:
    """Fenced blocks of a page, in order."""
    return [
        Block(
            found["language"],
            found["text"],
            page.count("\n", 0, found.start()) + 2,
            page[: found.start()].rstrip().endswith(FAILS),
        )
        for found in _FENCE.finditer(page)
    ]


def section(page: str, heading: str) -> str:
    """A section of a page, to the next heading of its level, without the text before it; line numbers stay.

    Raises:
        ValueError: there is no such heading.
    """
    at = page.index(f"\n{heading}\n")
    end = page.find(f"\n{heading.partition(' ')[0]} ", at + len(heading))
    return "\n" * page.count("\n", 0, at) + page[at : end if end >= 0 else None]


def matches(expected: str, printed: str) -> bool:
    """Whether a program printed what a page shows; ``...`` stands for anything, any blanks for one another."""
    text = " ".join(printed.split())
    first, *others = (" ".join(piece.split()) for piece in expected.split("..."))
    if not others:
        return text == first
    if not text.startswith(first):
        return False
    text = text[len(first) :]
    *middle, last = others
    for piece in middle:  # the earliest place leaves the most for the rest; a regular expression would try them all
        start = text.find(piece)
        if start < 0:
            return False
        text = text[start + len(piece) :]
    return text.endswith(last)


class Shell:
    """A bash to which blocks are given one after another; a context manager that ends all that it started."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        """Start it in ``directory``, with this environment and no other."""
        self._script = directory.parent / f"{directory.name}.sh"
        give, self._to = os.pipe()
        self._from, printed = os.pipe()
        self._bash = subprocess.Popen(
            ["/bin/bash", "--noprofile", "--norc"],
            cwd=directory,
            env=dict(environment),
            stdin=give,
            stdout=printed,
            stderr=printed,
            start_new_session=True,
        )
        os.close(give)
        os.close(printed)
        self._give("set -E; trap 'failed=$?' ERR\n")

    def run(self, block: str, timeout_s: float) -> tuple[int, str]:
        """Run a block: 0 or the status of its last command that failed, and what it printed, on either stream.

        Raises:
            TimeoutError: it took longer, or ended the shell.
        """
        self._script.write_text(block, encoding="utf-8")
        mark = f"--{time.monotonic_ns()}--"
        self._give(f"failed=0; . '{self._script}' </dev/null; printf '\\n%s %d\\n' {mark} $failed\n")
        printed, deadline = b"", time.monotonic() + timeout_s
        while not (end := re.search(rf"\n{mark} (\d+)\n".encode(), printed)):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._from], [], [], left)[0]:
                raise TimeoutError(f"It ran longer than {timeout_s:g} s and had printed:\n{printed.decode()}")
            chunk = os.read(self._from, 65536)
            if not chunk:
                raise TimeoutError(f"It ended the shell and had printed:\n{printed.decode()}")
            printed += chunk
        return int(end[1]), printed[: end.start()].decode("utf-8", "replace")

    def close(self) -> None:
        """End the shell and what runs in its session's foreground."""
        os.close(self._to)
        try:
            self._bash.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._bash.pid, signal.SIGKILL)
            self._bash.wait()
        os.close(self._from)
        self._script.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _give(self, text: str) -> None:
        os.write(self._to, text.encode())


def run_page(page: str, directory: Path, environment: Mapping[str, str], timeout_s: float = 60.0) -> Iterator[Block]:
    """Run a page's blocks in a directory; yields each bash block once it has done what the page says.

    Args:
        page: Markdown.
        directory: Where the shell starts and files are written.
        environment: Of the shell.
        timeout_s: Limit of each block.

    Raises:
        PageError: a block failed, or printed something else.
    """
    printed = None
    with Shell(directory, environment) as shell:
        for block in blocks(page):
            if block.file:
                (directory / block.file).write_text(block.text, encoding="utf-8")
            elif block.language == SHELL_TO_RUN:
                try:
                    status, printed = shell.run(block.text, timeout_s)
                except TimeoutError as error:
                    raise PageError(f"Line {block.line}: {error}") from None
                if bool(status) != block.must_fail:
                    verb = "succeeded" if block.must_fail else f"failed with {status}"
                    raise PageError(f"Line {block.line}:\n{block.text}{verb} and printed:\n{printed}")
                yield block
            elif block.language == OUTPUT and printed is not None:
                if not matches(block.text, printed):
                    raise PageError(f"Line {block.line}: the page shows\n{block.text}but this was printed:\n{printed}")
                printed = None

"""The runs of a search on a farm: each board's process forks for each set of settings."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arm_client.commands.explore.search import Run, RunAll, Runner
from arm_client.farm import Farm, Status
from hbrt.errors import BoardError

if TYPE_CHECKING:
    from arm_client.client import Board


class Work:
    """Run a program with some settings, in the memory of a farm's board.

    Args:
        program: Its file.
        arguments: Its arguments.
        seconds: How long a run may take.
    """

    def __init__(self, program: str, arguments: Sequence[str], seconds: float) -> None:
        self._program, self._arguments, self._seconds = program, tuple(arguments), seconds
        self._directory = str(Path.cwd())
        self._on: Any = None
        self._runner: Runner | None = None
        self._stack = ExitStack()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_on": None, "_runner": None, "_stack": ExitStack()}

    def __call__(self, board: Board, settings: Mapping[str, str]) -> Run:
        """The run with these settings, as one without a farm."""
        if self._runner is None or self._on is not board:  # a board that died has another one after it
            self.close()
            os.chdir(self._directory)
            runner = Runner(self._program, self._arguments, self._seconds, str(board.path))
            self._runner = self._stack.enter_context(runner)
            self._on = board
        return self._runner.run(settings)

    def close(self) -> None:
        """End the process that forks."""
        self._runner = None
        self._stack.close()


@contextmanager
def runs_on_farm(work: Work, boards: int, address: str | None) -> Iterator[RunAll]:
    """Runs of a program with settings, in order, regardless of the board.

    Raises:
        BoardError: no farm is available, or a run did not end.
    """
    with Farm(boards, address=address) as farm:

        def run_all(settings: Iterable[Mapping[str, str]]) -> Generator[Run, None, None]:
            for result in farm.map(work, settings):
                if result.status is not Status.GOOD:
                    raise BoardError(f"Run {result.index} did not finish on the farm: {result.text}")
                yield result.value

        yield run_all

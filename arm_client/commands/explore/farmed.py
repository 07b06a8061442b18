"""The runs of a search on a farm: each board's process forks for the seeds that it gets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from arm_client.commands.explore.search import Run, Runner, Runs
from arm_client.farm import Farm, Status
from hbrt.errors import BoardError
from hbrt.exploration.seeds import settings_of

if TYPE_CHECKING:
    from arm_client.client import Board


class SeedWork:
    """Run a program by a seed, in the memory of a farm's board.

    Args:
        program: Its file.
        arguments: Its arguments.
        seconds: How long a run may take.
        folder: Where files of the runs may lie.
        given: Settings of the user's own, which stay.
    """

    def __init__(
        self, program: str, arguments: Sequence[str], seconds: float, folder: Path, given: Mapping[str, str]
    ) -> None:
        self._program, self._arguments, self._seconds = program, tuple(arguments), seconds
        self._folder, self._given, self._directory = str(folder), dict(given), str(Path.cwd())
        self._on: Any = None
        self._runner: Runner | None = None
        self._stack = ExitStack()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_on": None, "_runner": None, "_stack": ExitStack()}

    def __call__(self, board: Board, seed: int) -> Run:
        """The run of a seed, as one without a farm."""
        if self._runner is None or self._on is not board:  # a board that died has another one after it
            self.close()
            os.chdir(self._directory)
            Path(self._folder).mkdir(parents=True, exist_ok=True)  # on another machine it is not there
            mine = self._stack.enter_context(TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True))
            self._runner = self._stack.enter_context(
                Runner(self._program, self._arguments, self._seconds, Path(mine), str(board.path))
            )
            self._on = board
        return self._runner.run(settings_of(seed, self._given))

    def close(self) -> None:
        """End the process that forks."""
        self._runner = None
        self._stack.close()


def runs_on_farm(work: SeedWork, seeds: Sequence[int], boards: int, address: str | None) -> Runs:
    """A run for each seed, in the order of the seeds, whichever board has it.

    Raises:
        BoardError: there is no farm, or a seed came to no end.
    """
    with Farm(min(boards, len(seeds)), address=address) as farm:
        for result in farm.map(work, seeds):
            if result.status is not Status.GOOD:
                raise BoardError(f"Seed {seeds[result.index]} came to no end on the farm: {result.text}")
            yield seeds[result.index], result.value

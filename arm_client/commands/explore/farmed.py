"""The runs of a search on a farm: each board's process forks for the seeds that it gets."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
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
        self._mine = ""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_on": None, "_runner": None, "_mine": ""}

    def __call__(self, board: Board, seed: int) -> Run:
        """The run of a seed, as one without a farm."""
        if self._runner is None or self._on is not board:  # a board that died has another one after it
            self.close()
            os.chdir(self._directory)
            Path(self._folder).mkdir(parents=True, exist_ok=True)  # on another machine it is not there
            self._mine = tempfile.mkdtemp(dir=self._folder)
            self._on = board
            self._runner = Runner(
                self._program, self._arguments, self._seconds, Path(self._mine), str(board.path)
            ).__enter__()
        return self._runner.run(settings_of(seed, self._given))

    def close(self) -> None:
        """End the process that forks."""
        if self._runner is not None:
            self._runner.__exit__()
            shutil.rmtree(self._mine, ignore_errors=True)
            self._runner = None


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

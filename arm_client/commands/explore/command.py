"""``hbrt explore``: a program in many orders of its steps, its copies and its cache."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from arm_client.commands.explore.search import Run, Runner, Runs, runs_of, shrink
from arm_client.commands.run.program import RunCommand, failing, is_program, no_program
from arm_client.commands.which_board import private_image, say_private
from hbrt import settings
from hbrt.board.private import private_daemon
from hbrt.cli.exits import Exit
from hbrt.cli.options import address_option, boards_option, check_option, image_option, timeout_option, was_given
from hbrt.cli.progress import progress
from hbrt.cli.report import Report, reports
from hbrt.exploration.seeds import SCHEDULE
from hbrt.findings.text import counted

RUN_SECONDS = 20.0
_LAST_LINES = 12


@click.command(cls=RunCommand, epilog="Example: hbrt explore --runs 200 my_program.py 3")
@click.argument("program", metavar="PROGRAM", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", metavar="[ARGUMENT...]", nargs=-1)
@image_option(help="Image whose ops run, on both cores. Default: the running board's, HBRT_IMAGE, or the packaged ops.")
@click.option(
    "--runs", type=click.IntRange(1, 1_000_000), default=500, show_default=True, help="How many orders to try."
)
@click.option("--first", "first_seed", type=click.IntRange(0), default=0, show_default=True, help="The first seed.")
@click.option("--shrink", "most_shrinks", type=click.IntRange(0), default=300, show_default=True,
              help="Runs that may be spent on a shorter order.")  # fmt: skip
@click.option("--farm", "is_farmed", is_flag=True, help="Run the seeds on several boards at a time.")
@boards_option
@address_option
@check_option
@timeout_option(RUN_SECONDS)
@reports
def command(
    program: str,
    arguments: tuple[str, ...],
    image: Path | None,
    runs: int,
    first_seed: int,
    most_shrinks: int,
    boards: int,
    address: str | None,
    timeout: float,
    *,
    is_farmed: bool,
) -> Report:
    """Run PROGRAM, a Python file or an executable file, in many orders, and stop at the first run that fails.

    Every other run goes through the orders by number of preemptions: lines of the program and of its ops at which
    another thread continues. In the runs between, a seed decides where that happens, the order of copies, and the
    cache's write-backs. A run fails if its exit code is not 0, if there is a finding, or if it takes longer than
    --timeout. A failed run of a seed is then repeated with fewer such decisions; 'hbrt run --seed N PROGRAM' repeats it
    unchanged. All cores are in the program's process. The exit code is 1 if a run failed. --farm finds the same run,
    faster.
    """
    settings.check()
    if not is_program(program):
        raise no_program(program)
    if not is_farmed and was_given("address", "boards"):
        raise click.UsageError("--boards and --address are for the boards of a farm: add --farm.")
    if dsp_image := private_image(image):
        os.environ["HBRT_IMAGE"] = dsp_image
    say_private(dsp_image)
    os.environ["HBRT_CHECK"] = failing(settings.words("HBRT_CHECK"))
    given = {name: os.environ[name] for name in os.environ if name.startswith("HBRT_") and name != SCHEDULE}
    with (
        runs_memory() as board,
        Runner(program, arguments, timeout, board) as runner,
        ExitStack() as stack,
    ):
        if is_farmed:
            from arm_client.commands.explore.farmed import Work, runs_on_farm

            work = Work(program, arguments, timeout)
            run_all = stack.enter_context(runs_on_farm(work, min(boards, runs), address))
        else:
            run_all = runner.run_all
        with progress(runs, "orders") as show:
            counts, note, failed = _search(runner, runs_of(run_all, first_seed, runs, given), show)
        is_short = failed is None or failed[0] is None or not most_shrinks
        shortest = failed and (failed[1] if is_short else shrink(runner, failed[1], most_shrinks))
    tried = len(counts)
    steps = f"{counted(min(counts), 'step')} at least, {fmean(counts):.0f} on average, {max(counts)} at most"
    lines: Iterable[str] = [f"{counted(tried, 'run')}, none of which failed: {steps}."]
    if failed and shortest:
        lines = _lines(failed[0], failed[1], shortest, program, arguments, tried)
    data = {
        "program": program,
        "runs": tried,
        "steps": {"least": min(counts), "mean": fmean(counts), "most": max(counts)},
        "note": note,
        "failed": failed and shortest and _document(failed[0], failed[1], shortest),
    }
    return Report(data, *([note] if note else []), *lines, code=Exit.FAILED if failed else Exit.GOOD)


def _search(
    runner: Runner, runs: Runs, show: Callable[[int], None]
) -> tuple[list[int], str, tuple[int | None, Run] | None]:
    """The steps of each run up to the first that fails, a note, and the seed and the run that failed."""
    counts: list[int] = []
    note = ""
    with closing(runs):
        for seed, run in runs:
            counts.append(run.step_count)
            show(len(counts))
            if run.code:
                return counts, note, (seed, run)
            if len(counts) == 1 and runner.run(run.settings).digest != run.digest:
                note = (
                    "The program is not deterministic: its steps differ for the same order. Look for "
                    "extra threads, times and random numbers; a seed may not reproduce a failure."
                )
    return counts, note, None


@contextmanager
def runs_memory() -> Iterator[str]:
    """A board whose memory the runs use one after another; its cores are idle."""
    os.environ["HBRT_QUARANTINE"] = "0"  # so that each run gets the addresses of the one before
    with private_daemon() as board:
        yield str(board.path)


def _document(seed: int | None, run: Run, shortest: Run) -> dict[str, Any]:
    return {
        "seed": seed,
        "exit_code": run.code,
        "output": run.output,
        "settings": dict(shortest.settings),
        "preemptions": [
            {"step": one.step, "goes_on": one.chosen, "instead_of": one.before, "site": one.site}
            for one in shortest.preemptions
        ],
    }


def _lines(
    seed: int | None, run: Run, shortest: Run, program: str, arguments: tuple[str, ...], tried: int
) -> Iterator[str]:
    printed = [line for line in shortest.output.splitlines() if line.strip()][-_LAST_LINES:]
    yield from (f"  {line}" for line in printed)
    whose = "" if seed is None else f" (seed {seed})"
    yield f"Run {tried}{whose} failed with exit code {run.code}; its last output is above."
    if count := len(shortest.preemptions):
        yield f"{counted(count, 'preemption')} {'is' if count == 1 else 'are'} enough:"
    else:
        yield "No preemption is needed: it fails in the default order."
    yield from (f"  {choice}" for choice in shortest.preemptions)
    line = shlex.join([program, *arguments])
    image = {"HBRT_IMAGE": os.environ["HBRT_IMAGE"]} if os.environ.get("HBRT_IMAGE") else {}
    if seed is not None:
        yield f"Repeat it: {_assigned(image)}hbrt run --seed {seed} {line}"
    yield f"Repeat it with only these: {_assigned({**image, **shortest.settings})}hbrt run {line}"


def _assigned(values: Mapping[str, str]) -> str:
    """Settings in front of a command of a shell."""
    return "".join(f"{name}={shlex.quote(value)} " for name, value in values.items())

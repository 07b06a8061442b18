"""The sample programs of a group, and the outcome of a run of one."""

from __future__ import annotations

import ast
import json
import os
import signal
import tempfile
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click

from arm_client.commands.run.defects import GROUP as DEFECTS
from arm_client.commands.run.forks import Forks
from arm_client.commands.run.program import failing, no_program
from hbrt import settings
from hbrt.samples_dir import samples_dir

# Samples that a group has from another one, as the vendor's script of the group has them.
_FROM_OTHERS = {"nn": {"digits": "dnn"}}
_RUNNER = "arm_client.commands.run.sample"
LOADED = ("numpy", "arm_client.client", "arm_client.sample", _RUNNER)
# Fields of every sample's record; None for an unknown value.
_FIELDS = ("op", "command", "core", "status", "max_error", "host_time_us", "modeled_us", "output_file")


class Outcome(NamedTuple):
    """One sample's run.

    Attributes:
        name: Of the sample.
        result: The values of its calls, and the comparison of its result with the reference.
        problem: Why it has no result or a wrong one; empty if it is correct.
        has_timed_out: Whether it was killed at its time limit.
        output: Its standard output and error.
    """

    name: str
    result: dict[str, Any]
    problem: str
    has_timed_out: bool
    output: str

    @property
    def has_passed(self) -> bool:
        """Whether it ran and its own check passed."""
        return not self.problem

    def document(self) -> dict[str, Any]:
        """For ``--json``: every field of _FIELDS, the other values that it returned, and those of its process."""
        return {
            "sample": self.name,
            **dict.fromkeys(_FIELDS),
            "op": self.name,
            **self.result,
            "passed": self.has_passed,
            "problem": self.problem,
            "output": self.output,
        }


def groups() -> list[str]:
    """Names of the groups: directories of ARM samples."""
    return sorted(path.name for path in (samples_dir() / "arm").iterdir() if any(path.glob("*.py")))


def samples_of(group: str) -> dict[str, Path]:
    """Samples of a group by name."""
    arm = samples_dir() / "arm"
    others = {name: arm / other / f"{name}.py" for name, other in _FROM_OTHERS.get(group, {}).items()}
    return {path.stem: path for path in sorted((arm / group).glob("[!_]*.py"))} | others


def chosen(group: str, names: tuple[str, ...]) -> dict[str, Path]:
    """The named samples, all for no name; the manual's spellings are good, too: BilateralFilter, pointpillar.

    Raises:
        click.UsageError: no such group or sample; the message lists the existing ones.
    """
    if group not in groups():
        if os.sep in group or "." in group or Path(group).exists():
            raise no_program(group)
        hint = _nearest_group(group) or _elsewhere(group, ())
        there = ", ".join(sorted([*groups(), DEFECTS]))
        raise click.UsageError(f"Unknown group {group!r} of samples; known are {there}.{hint}")
    known = samples_of(group)
    by_letters = {_letters(name): name for name in known}
    if unknown := [name for name in names if _letters(name) not in by_letters]:
        hint = _elsewhere(unknown[0], known)
        raise click.UsageError(f"Unknown sample {unknown[0]!r} of group {group}; known are {', '.join(known)}.{hint}")
    wanted = [by_letters[_letters(name)] for name in names]
    return {name: known[name] for name in wanted or known}


def _nearest_group(name: str) -> str:
    near = get_close_matches(name.lower(), groups(), 1)
    return f" Did you mean {near[0]}?" if near else ""


def _elsewhere(name: str, here: Iterable[str]) -> str:
    """A sentence that suggests a sample: the same name in another group, the nearest one here, or elsewhere."""
    own = {_letters(sample): sample for sample in here}
    others = {_letters(sample): f"{group} {sample}" for group in groups() for sample in samples_of(group)}
    wanted = _letters(name)
    if wanted not in others and (near := get_close_matches(wanted, own, 1)):
        return f" Did you mean {own[near[0]]}?"
    if found := get_close_matches(wanted, others, 1):
        return f" Did you mean 'hbrt run {others[found[0]]}'?"
    return ""


def _letters(name: str) -> str:
    """A sample's name in lower case, without underscores and a final s: equal for all its spellings."""
    return name.replace("_", "").lower().removesuffix("s")


@cache
def tree_of(file: Path) -> ast.Module:
    """A sample's syntax tree: data about a sample is read from it without running it."""
    return ast.parse(file.read_text(encoding="utf-8"))


def summary_of(file: Path) -> str:
    """First sentence of a sample's docstring."""
    text = ast.get_docstring(tree_of(file)) or ""
    return text.partition("\n\n")[0].replace("\n", " ")


def arguments_of(file: Path) -> list[str]:
    """Names of the arguments that a sample's ``main()`` takes; the program is read, not run."""
    for node in tree_of(file).body:
        if isinstance(node, ast.FunctionDef) and node.name == "main":
            return [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
    return []


def run_sample(
    forks: Forks,
    name: str,
    file: Path,
    board: str,
    timeout_s: float,
    options: dict[str, str] | None = None,
    mode: str = "direct",
) -> Outcome:
    """Run a sample in its own process, on a board that is running.

    Args:
        forks: Runs it; should have loaded LOADED.
        name: For the reader.
        file: The program.
        board: Directory of the board; empty for a private board, with the sample as its core.
        timeout_s: A sample that takes longer is killed.
        options: Arguments of its ``main()``, by name; unknown ones are dropped.
        mode: HB_DSP_RPC_MODE of the process: "direct" or "relay".
    """
    ours = {"HBRT_BOARD": board, "HBRT_AUTOSTART": "0", "HB_DSP_RPC_MODE": mode} if board else {}
    ours["HBRT_CHECK"] = failing(settings.words("HBRT_CHECK"))
    with tempfile.NamedTemporaryFile() as answer:
        ended = forks.run(str(file), [answer.name, json.dumps(options or {})], ours, timeout_s, runner=_RUNNER)
        raw = answer.read()
    result = _parsed(raw)
    own = result.pop("problem", "")  # the findings at its end come after it
    problem = own or _problem(result, ended.code, ended.output)
    if ended.has_timed_out:
        problem = f"It was killed at the time limit of {timeout_s:g} s."
    if result.pop("has_report", False):
        result["report"] = ended.output.splitlines()
    if not problem and options:
        result["output_file"] = _made(name, options.get("output_dir"))
    return Outcome(name, result, problem, ended.has_timed_out, ended.output)


def _made(name: str, directory: str | None) -> str | None:
    """The file of a sample's result, a picture where it draws one."""
    files = [Path(directory) / f"{name}{suffix}" for suffix in (".png", ".npy")] if directory else []
    return next((str(file) for file in files if file.is_file()), None)


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        result = json.loads(raw)
    except ValueError:
        return {}
    return result if isinstance(result, dict) else {}


def _problem(result: dict[str, Any], exit_code: int, output: str) -> str:
    if exit_code < 0:
        return f"It was killed by signal {-exit_code} ({signal.Signals(-exit_code).name})."
    if exit_code:
        lines = output.strip().splitlines()
        return lines[-1] if lines else f"It exited with code {exit_code}."
    if not result:
        return "It ended without a result."
    if result.get("status", 0) != 0:
        return f"The call's status is {result.get('status')}."
    if not result.get("passed"):
        return f"The largest error, {result.get('max_error')}, is above the sample's tolerance."
    return ""

"""Builds and runs public programs as they are, and writes what came of each into docs/compatibility.md.

C, C++ and IDL files are built by ``hbrt port`` and nothing else. Python programs are run on stand-ins of their models;
the first model runs of each are recorded (witness/sitecustomize.py) and compared with onnxruntime's.

    python -m tools.compatibility MIRROR [--list FILE] [--vendor NAME] [--repository OWNER/NAME ...]

MIRROR holds clones as OWNER/NAME or OWNER+NAME/repo. The page lists the C, C++ and IDL files of each repository and
commit, compatibility.toml next to this file the Python programs. --list tries the repositories of another such file: of
one that is not on the page, each file that ``hbrt port`` builds. Nothing of a repository is kept, and rows of programs
that are not tried stay as they are. Python programs, and CMake files that ``hbrt port --link`` reads, run code of the
repositories: use a machine or container that holds nothing else. Other headers and libraries are found by CPATH,
LD_LIBRARY_PATH and PYTHONPATH, which the caller sets.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper

from rknn.api import RKNN
from tools.stand_in import write_model

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "compatibility.md"
LIST = Path(__file__).with_suffix(".toml")
WITNESS = Path(__file__).parent / "witness"
RUNS = "hbrt_runs"
PYTHON = (".py", ".ipynb")
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
MAX_BYTES = 4_000_000
TIMEOUT_S = 120.0
INTERRUPTED_S = 30.0
_HBRT = [sys.executable, "-m", "hbrt"]
HEAD = "| repository | path | commit | result | values | why not |\n|---|---|---|---|---|---|\n"
_OPEN = "hbrt or the stand-in"
_at_absolute_paths = threading.Lock()


@dataclass(frozen=True)
class Result:
    """What came of one program.

    Attributes:
        vendor: Whose board it is for.
        repository: OWNER/NAME.
        path: Of the program, in the repository.
        commit: What was checked out.
        text: "builds", "runs", or the reason why it does not.
        values: How many of its recorded model runs gave what onnxruntime gives; "" without such runs.
    """

    vendor: str
    repository: str
    path: str
    commit: str
    text: str
    values: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it builds or runs."""
        return self.text in {"builds", "runs"}


def check_out(clone: Path, commit: str, target: Path) -> None:
    """Write the files of a commit that the clone has, but for large ones.

    Raises:
        FileNotFoundError: there is no such clone, or it has not the commit.
    """
    git_of = ["git", "-C", str(clone)]
    listing = [*git_of, "ls-tree", "-r", "-z", commit]
    tree = subprocess.run(listing, check=False, capture_output=True, text=True)
    if tree.returncode:
        raise FileNotFoundError(f"{clone} has no commit {commit}: {tree.stderr.strip()}")
    rows = [row.split(maxsplit=3) for row in tree.stdout.split("\0") if row]
    command = [*git_of, "cat-file", "--batch"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as git:
        if git.stdin is None or git.stdout is None:
            raise AssertionError
        for _, kind, name, path in rows:
            if kind != "blob":
                continue
            git.stdin.write(f"{name}\n".encode())
            git.stdin.flush()
            answer = git.stdout.readline().split()
            if answer[-1] == b"missing":
                continue
            data = git.stdout.read(int(answer[2]))
            git.stdout.read(1)
            if len(data) <= MAX_BYTES:
                (target / path).parent.mkdir(parents=True, exist_ok=True)
                (target / path).write_bytes(data)


def port(folder: Path, paths: Iterable[str]) -> dict[str, str]:
    """Build files of a tree by ``hbrt port``; of no paths, each file that it builds.

    A file that fails is tried again with ``--link``: its macros may be such as only CMake knows.

    Returns:
        By path: "builds", or the first error.
    """
    found = _ported(folder, *(path for path in paths if (folder / path).is_file()))
    failed = found["failed"] and _ported(folder, *found["failed"], options=("--link",))["failed"]
    return {path: _cell(failed.get(path, "builds")) for path in found["units"]}


def _ported(folder: Path, *paths: str, options: tuple[str, ...] = ()) -> dict[str, Any]:
    command = [*_HBRT, "port", "--json", *options, "--", str(folder), *paths]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout or "{}")
    if "failed" not in found:
        raise RuntimeError(f"hbrt port {folder}: {done.stdout or done.stderr}")
    return found


def run_one(folder: Path, program: dict[str, Any]) -> tuple[str, str]:
    """Run one Python program, in its own copy of the folder; as ``run`` and as ``compared``."""
    with tempfile.TemporaryDirectory() as made, absolute_files(program):
        own = shutil.copytree(folder, Path(made), symlinks=True, dirs_exist_ok=True)
        text = run(own, program)
        return text, compared(own, program) if text == "runs" else ""


@contextmanager
def absolute_files(program: dict[str, Any]) -> Iterator[None]:
    """Remove afterwards what is made at a program's absolute paths; only one program has any at a time.

    Raises:
        FileExistsError: this machine has such a file.
    """
    kinds = ("pictures", "texts", "arrays")
    models = [Path(model["file"]) for model in program.get("models", ())]
    files = [*models, *(file.with_suffix(".yaml") for file in models)]
    files += [Path(name) for kind in kinds for name in program.get(kind, ())]
    files = [file for file in files if file.is_absolute()]
    with _at_absolute_paths if files else nullcontext():
        taken = [file for file in files if file.exists()]
        if taken:
            raise FileExistsError(f"{taken[0]} already exists. Run this on a machine without it.")
        new = {next(one for one in (*reversed(file.parents), file) if not one.exists()) for file in files}
        try:
            yield
        finally:
            for one in new:
                shutil.rmtree(one) if one.is_dir() else one.unlink(missing_ok=True)


def run(folder: Path, program: dict[str, Any]) -> str:
    """Run one Python program on stand-ins of its models; "runs", or the last line that it printed.

    What it ``prints`` shows that it got to its end, where its exit code does not. One that never ends is interrupted
    after ``interrupt_s`` seconds, as by Ctrl-C, and again if it goes on; it runs when it had not failed until then.
    """
    cwd = folder / program.get("cwd", Path(program["path"]).parent)
    prepare(cwd, program)
    command = [sys.executable, str(code_of(folder / program["path"]))]
    runs = folder / RUNS
    runs.mkdir()
    environment = {**os.environ, "MPLBACKEND": "Agg", "QT_QPA_PLATFORM": "offscreen", "WITNESSED_RUNS": str(runs)}
    environment["PYTHONPATH"] = os.pathsep.join([str(WITNESS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment |= program.get("environment", {})
    limit = program.get("interrupt_s", TIMEOUT_S)
    with subprocess.Popen(
        [*command, *program.get("arguments", ())],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired as expired:
            if "interrupt_s" not in program:
                process.kill()
                return f"did not end within {TIMEOUT_S:.0f} s"
            for _ in range(2):
                process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    output, errors = process.communicate(timeout=INTERRUPTED_S)
                    break
            else:
                process.kill()
                return "did not end when interrupted"
            is_good = b"Traceback" not in (expired.stderr or b"") and program.get("prints", "") in output
            return "runs" if is_good else _cell(_last_line(errors))
    if process.returncode < 0:
        return f"ended by signal {-process.returncode}"
    if process.returncode or program.get("prints", "") not in output:
        return _cell(_last_line(errors) or f"exit code {process.returncode}")
    return "runs"


def code_of(file: Path) -> Path:
    """The file itself, or the code of a notebook, without its shell commands, in a file next to it."""
    if file.suffix != ".ipynb":
        return file
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    code = Path(f"{file}.py")
    code.write_text(re.sub(r"^[!%](.*\\\n)*.*", "", text, flags=re.MULTILINE), encoding="utf-8")
    return code


def compared(folder: Path, program: dict[str, Any]) -> str:
    """How many of a program's recorded model runs gave what onnxruntime gives for the same inputs and the same file.

    A quantized output holds the numbers before its DequantizeLinear. Outputs without their own place in the board's
    memory are not compared.
    """
    good = total = 0
    files = {Path(model["file"]).stem: model for model in program.get("models", ())}
    for recorded in sorted((folder / RUNS).glob("*.npz")):
        model = files[recorded.stem.rpartition("-")[0].rpartition("-")[0]]
        file = folder / program.get("cwd", Path(program["path"]).parent) / model["file"]
        session = onnxruntime.InferenceSession(file.read_bytes(), providers=["CPUExecutionProvider"])
        with np.load(recorded) as arrays:
            feeds = {name[2:]: arrays[name] for name in arrays if name.startswith("i:")}
            held = {name[2:]: arrays[name] for name in arrays if name.startswith("o:")}
        wanted = dict(zip(held, session.run(list(held), feeds), strict=True)) if held else {}
        scales = {row.get("name", f"output{at}"): row.get("scale") for at, row in enumerate(model["outputs"])}
        total += bool(held)
        good += bool(held) and all(
            np.array_equal(_real(array, scales[name]).reshape(wanted[name].shape), wanted[name])
            for name, array in held.items()
        )
    return f"{good} of {total} equal" if total else ""


def _real(stored: NDArray[Any], scale: float | None) -> NDArray[Any]:
    return stored if scale is None else stored.astype(np.float32) * np.float32(scale)


def _last_line(text: str) -> str:
    """The last line, or, where a program took the None of a refused call for a result, what the call said."""
    lines = [line for line in text.splitlines() if line.strip()]
    refused = [line for line in lines if line.lstrip().startswith("E ")]
    return refused[-1] if refused and "NoneType" in lines[-1] else (lines or [""])[-1]


def prepare(cwd: Path, program: dict[str, Any]) -> None:
    """Put stand-ins of a program's models, ``pictures``, ``arrays`` and ``texts``, where it looks for them.

    A model whose file ends with .rknn is converted by the toolkit, for the program's ``target``.
    """
    for model in program.get("models", ()):
        file = cwd / model["file"]
        source = file.with_suffix(".onnx") if file.suffix == ".rknn" else file
        write_model(source, model["inputs"], model["outputs"])
        if source != file:
            convert(source, file, program.get("target", "rk3588"))
    for file in program.get("pictures", ()):
        (cwd / file).parent.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(0).integers(0, 256, (12, 16, 3)).astype(np.uint8)
        cv2.imwrite(str(cwd / file), cv2.resize(noise, (640, 480)))
    for file, shape in program.get("arrays", {}).items():
        array = np.random.default_rng(0).random(shape, np.float32)
        np.save(cwd / file, array) if file.endswith(".npy") else array.tofile(cwd / file)
    for target, text in program.get("texts", {}).items():
        (cwd / target).parent.mkdir(parents=True, exist_ok=True)
        (cwd / target).write_text(text, encoding="utf-8")


def convert(source: Path, file: Path, target: str) -> None:
    """Write an ONNX model as an .rknn file of a chip, quantized by one sample of zeros.

    Raises:
        RuntimeError: the toolkit refused it; it printed why.
    """
    rknn: Any = RKNN()
    data = source.with_suffix(".txt")
    names = []
    for at, value in enumerate(onnx.load(source).graph.input):
        shape = [one.dim_value for one in value.type.tensor_type.shape.dim]
        names.append(str(source.with_name(f"{source.stem}_{at}.npy")))
        np.save(names[-1], np.zeros(shape, helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)))
    data.write_text(" ".join(names) + "\n", encoding="utf-8")
    failed = rknn.config(target_platform=target) or rknn.load_onnx(source)
    if failed or rknn.build(do_quantization=True, dataset=data) or rknn.export_rknn(file):
        raise RuntimeError(f"{source.name} was not converted for {target}.")
    rknn.release()


def why_not(text: str, reasons: list[dict[str, Any]]) -> str:
    """The first reason of compatibility.toml that a result matches; "" for a good one."""
    if text in {"builds", "runs"}:
        return ""
    return next((one["name"] for one in reasons if re.search(one["match"], text)), _OPEN)


def _cell(text: str) -> str:
    return text.strip().replace("|", "\\|")[:120]


def results(mirror: Path, repository: dict[str, Any], units: list[str]) -> Iterator[Result]:
    """Build the listed units of a repository, and run its programs, two at a time."""
    name, commit, runs = repository["name"], repository["commit"], repository.get("run", [])
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(2) as pool:
        folder = Path(made)
        check_out(clone_of(mirror, name), commit, folder)
        built = port(folder, units) if units or not runs else {}
        for path in [unit for unit in units if unit in built] or built:
            yield Result(repository["vendor"], name, path, commit, built[path])
        texts = pool.map(lambda program: run_one(folder, program), runs)
        for program, (text, values) in zip(runs, texts, strict=True):
            yield Result(repository["vendor"], name, program["path"], commit, text, values)


def clone_of(mirror: Path, name: str) -> Path:
    """Where the clone of OWNER/NAME is."""
    flat = mirror / name.replace("/", "+") / "repo"
    return flat if flat.is_dir() else mirror / name


def rows_of(page: str, vendor: str) -> list[Result]:
    """A vendor's rows of a page."""
    section = page.partition(f"## {vendor}\n")[2].partition("\n## ")[0]
    rows = [row[2:-2].split(" | ") for row in section.splitlines() if row.startswith("| ")]
    return [Result(vendor, *row[:5]) for row in rows if "/" in row[0]]


def is_run(row: Result) -> bool:
    """Whether a row is of a program in C or C++ that was run, which this tool no longer does."""
    return row.text == "runs" and not row.path.endswith(PYTHON)


def merged(before: list[Result], tried: list[Result]) -> list[Result]:
    """A vendor's rows, with those of the programs that were tried in the place of those before."""
    again = {place_of(row) for row in tried}
    rows = [row for row in before if is_run(row) or place_of(row) not in again]
    places = {place_of(row): at for at, row in reversed(list(enumerate(before)))}
    return sorted([*rows, *tried], key=lambda row: places.get(place_of(row), len(before)))


def place_of(row: Result) -> tuple[str, str, str]:
    """What tells a row from others on the page, which shortens commits."""
    return row.repository, row.commit[:10], row.path


def kind_of(row: Result, repositories: list[dict[str, Any]]) -> str:
    """A program's language, and for C and C++ its board; IDL for an IDL file."""
    if row.path.endswith(PYTHON):
        return "Python"
    if row.path.endswith(".idl"):
        return "IDL"
    own = (one for one in repositories if one["name"] == row.repository and one["commit"].startswith(row.commit[:10]))
    board = next(own, {}).get("board", "X3 and X5" if row.vendor == "RDK" else "")
    return f"C and C++ for {board}" if board else "C and C++"


def table(rows: list[Result], listed: dict[str, Any]) -> str:
    """The rows as Markdown, behind the number of good ones of each kind and of the others for each reason.

    Args:
        rows: Of one vendor.
        listed: What compatibility.toml says. Its reasons with ``offered = false`` are of what hbrt does not offer: what
            needs that is left out of the second count. Those with ``complete = false`` are of programs with files or
            libraries that cannot be had, which build nowhere: they are left out of the last count, too.
    """
    reasons = listed.get("reason", [])
    whys = [why_not(row.text, reasons) for row in rows]
    absent = [one["name"] for one in reasons if not one.get("offered", True) and one["name"] in whys]
    partial = [one["name"] for one in reasons if not one.get("complete", True) and one["name"] in whys]
    kinds = [kind_of(row, listed["repository"]) for row in rows]
    counts = {"build or run": list(zip(kinds, whys, strict=True))}
    for title, left in ((f"the same without {' and '.join(absent)}", absent), ("of complete ones", partial)):
        if left:
            counts[title] = [(kind, why) for kind, why in list(counts.values())[-1] if why not in left]
    columns = ["programs", *counts]
    lines = [f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"]
    for kind in [*sorted(set(kinds)), "all"]:
        parts = ([why for own, why in some if kind in {own, "all"}] for some in counts.values())
        lines.append(f"| {kind} | {' | '.join(map(_share, parts))} |\n")
    lines.append("\n| why not | programs |\n|---|---|\n")
    lines += [f"| {why} | {number} |\n" for why, number in Counter(filter(None, whys)).most_common()]
    lines.append(f"\n{HEAD}")
    for row, why in zip(rows, whys, strict=True):
        lines.append(f"| {row.repository} | {row.path} | {row.commit[:10]} | {row.text} | {row.values} | {why} |\n")
    return "".join(lines)


def _share(whys: list[str]) -> str:
    good = whys.count("")
    return f"{good} of {len(whys)} ({good / max(len(whys), 1):.1%})"


def write(page: str, vendor: str, rows: list[Result], listed: dict[str, Any]) -> str:
    """The page with a vendor's rows replaced, or added, and each section's counts made anew.

    Raises:
        ValueError: the page has not the lines between which results stand.
    """
    if BEGIN not in page or END not in page:
        raise ValueError(f"{PAGE.name} has no lines {BEGIN} and {END}.")
    head, _, rest = page.partition(BEGIN)
    middle, _, tail = rest.partition(END)
    vendors = {part.split("\n", 1)[0] for part in middle.split("\n## ")[1:]} | {vendor}
    sections = {one: rows if one == vendor else rows_of(page, one) for one in sorted(vendors)}
    body = "".join(f"## {one}\n\n{table(own, listed)}\n" for one, own in sections.items())
    return f"{head}{BEGIN}\n\n{body}{END}{tail}"


def main() -> None:
    """Read the lists, try the programs, write the page."""
    parser = argparse.ArgumentParser(description="Build and run public programs as they are.")
    parser.add_argument("mirror", type=Path, metavar="MIRROR", help="folder with clones as OWNER/NAME")
    parser.add_argument("--list", type=Path, metavar="FILE", help="another list, with the repositories to try")
    parser.add_argument("--vendor", help="only programs for this vendor's boards")
    parser.add_argument("--repository", action="append", metavar="OWNER/NAME", help="only this one; may be repeated")
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs would inherit that a background job ignores it
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))
    own = tomllib.loads(given.list.read_text(encoding="utf-8"))["repository"] if given.list else listed["repository"]
    page = PAGE.read_text(encoding="utf-8")
    vendors = re.findall(r"^## (.+)$", page.partition(BEGIN)[2], re.MULTILINE)
    for vendor in sorted({*vendors, *(one["vendor"] for one in own)} if given.vendor is None else {given.vendor}):
        rows = rows_of(page, vendor)
        repositories = {(one["name"], one["commit"][:10]): one for one in own if one["vendor"] == vendor}
        units: dict[tuple[str, str], list[str]] = {}
        for row in rows:
            if not row.path.endswith(PYTHON) and not is_run(row):
                units.setdefault((row.repository, row.commit), []).append(row.path)
        for name, commit in {} if given.list else units:
            repositories.setdefault((name, commit), {"vendor": vendor, "name": name, "commit": commit})
        for place, one in repositories.items():
            if one["name"] not in (given.repository or [one["name"]]):
                continue
            try:
                rows = merged(rows, list(results(given.mirror, one, units.get(place, []))))
            except FileNotFoundError as absent:
                sys.stderr.write(f"{absent}\n")
                continue
            page = write(page, vendor, rows, listed)
            PAGE.write_text(page, encoding="utf-8")
        sys.stdout.write(f"{vendor}\n{table(rows, listed).partition(HEAD)[0]}")


if __name__ == "__main__":
    main()

"""``hbrt port``: how far a program's tree is from running here."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import click

from hbrt.cc.toolchain import arm_flags, command_line, compiler_of
from hbrt.cli.exits import Exit
from hbrt.cli.report import Report, reports
from hbrt.port.scan import Found, nearest_first, scan

_KINDS = (
    ("missing", "Not here, of the vendors' APIs"),
    ("without_effect", "Accepted without effect"),
    ("headers", "Headers of others, not found"),
    ("libraries", "Libraries of others, to be linked"),
    ("modules", "Python modules that cannot be imported"),
    ("models", "Models compiled for a board"),
)
_ABSENT = ": No such file or directory"


@click.command(epilog="Example: hbrt port ~/demo")
@click.argument("root", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("parts", metavar="[PATH]...", nargs=-1)
@reports
def command(root: Path, parts: tuple[str, ...]) -> Report:
    """Read the C, C++, Python and CMake files of DIR, compile each unit as it is, and say where to begin.

    With a PATH, only the units of this file or folder in DIR are compiled.

    Ends with 1 when a unit does not build, or a name of a vendor's API or a module is missing.
    """
    found = scan(root)
    is_of_vendor = bool(found.works or found.missing or found.vendor_headers)
    units = [unit for unit in found.units if _is_part(unit, parts)] if is_of_vendor or parts else []
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as compilers:
        whys = compilers.map(lambda unit: _compile(root, unit, found), units)
        failed = {unit: why for unit, why in zip(units, whys, strict=True) if why}
    begin = _where_to_begin(found, failed) if is_of_vendor else ""
    built = (
        f"{len(units) - len(failed)} of {len(units)} C and C++ files build as they are.",
        *(f"  {unit}: {why}" for unit, why in failed.items()),
        f"{len(found.works)} names of the vendors' APIs are used and here.",
    )
    return Report(
        {**asdict(found), "units": units, "failed": failed, "begin": begin},
        *(built if units else ("No file here uses a vendor's API; nothing was compiled.",)),
        *(f"{heading}: {', '.join(rows)}" for kind, heading in _KINDS if (rows := getattr(found, kind))),
        *([f"Where to begin: {begin}"] if begin else []),
        code=Exit.FAILED if failed or found.missing or found.modules else Exit.GOOD,
    )


def _is_part(unit: str, parts: tuple[str, ...]) -> bool:
    """Whether a unit is one of these files, or in one of these folders; any is, of no parts."""
    return not parts or any(f"{unit}/".startswith(f"{part.rstrip('/')}/") for part in parts)


def _compile(root: Path, unit: str, found: Found) -> str:
    """The first error of one unit; "" when it builds."""
    above = {str(Path(folder).parent) for folder in found.folders} - set(found.folders)
    folders = [
        *(f"-I{name}" for name in nearest_first(set(found.folders) - set(found.late_folders), unit)),
        *(f"-idirafter{name}" for name in nearest_first([*found.late_folders, *above], unit)),
    ]
    own = [names for folder, names in found.definitions.items() if folder == "." or unit.startswith(f"{folder}/")]
    arguments = ["-c", "-w", *(f"-D{name}" for names in own for name in names), *folders, unit, "-o", os.devnull]
    line = command_line(compiler_of([unit]), arm_flags(), arguments)
    done = subprocess.run(line, cwd=root, check=False, capture_output=True, text=True, errors="replace")
    if done.returncode == 0:
        return ""
    errors = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
    return errors[0].rpartition("error: ")[2] if errors else f"exit code {done.returncode}"


def _where_to_begin(found: Found, failed: dict[str, str]) -> str:
    absent = [why.removesuffix(_ABSENT) for why in failed.values() if why.endswith(_ABSENT)]
    if absent:
        return f"install what {absent[0]} comes with, or stub it; then run 'hbrt port' again."
    if found.missing:
        return f"replace {found.missing[0]}: hbrt has no such name."
    if failed:
        return f"look at the first error of {next(iter(failed))}."
    if found.modules:
        return f"install or stub the Python module {found.modules[0]}."
    if found.models:
        return (
            f"put an ONNX file in the place of {found.models[0]}, by 'hbrt model new FILE.onnx --as {found.models[0]}'."
        )
    return "run it; 'hbrt model new' puts an ONNX file in the place of its model."

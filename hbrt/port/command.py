"""``hbrt port``: how far a program's tree is from running here."""

from __future__ import annotations

import re
import tempfile
from operator import not_
from os.path import normpath
from pathlib import Path

import click

from hbrt.borders.guests import MissingGuestError, check_brought
from hbrt.cli.exits import Exit
from hbrt.cli.report import Report, reports
from hbrt.port.build import build
from hbrt.port.link import Linked, link, with_targets
from hbrt.port.scan import Found, scan

_KINDS = (
    ("missing", "Not here, of the vendors' APIs"),
    ("without_effect", "Accepted without effect"),
    ("headers", "Headers of others, not found"),
    ("libraries", "Libraries of others, to be linked"),
    ("modules", "Python modules that cannot be imported"),
    ("models", "Models compiled for a board"),
)
_ABSENT = re.compile(r"'?([^']+?)'?(?:: No such file or directory| file not found)$")


@click.command(epilog="Example: hbrt port ~/demo")
@click.argument("root", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("parts", metavar="[PATH]...", nargs=-1)
@click.option("--link", "links", is_flag=True, help="Link CMake's targets, too: runs what DIR's CMake files run.")
@reports
def command(root: Path, parts: tuple[str, ...], *, links: bool) -> Report:
    """Read the C, C++, Python and CMake files of DIR, compile each unit as it is, and say where to begin.

    With a PATH, only the units of this file or folder in DIR are compiled.

    Ends with 1 when a unit does not build, a target does not link, or a name of a vendor's API or a module is missing.
    """
    found = scan(root, parts)
    units = [unit.path for unit in found.units]
    is_of_vendor = bool(units or found.works or found.missing)
    with tempfile.TemporaryDirectory() as made:
        linked = link(root, found.projects, set(units), Path(made)) if links else Linked([], {})
        failed, macros = build(root, with_targets(found, linked.targets))
    targets = {normpath(f"{one.project}/{one.name}"): one.why for one in linked.targets}
    refused = {normpath(f"{folder}/CMakeLists.txt"): why for folder, why in linked.projects.items() if why}
    unlinked = {target: why for target, why in targets.items() if why} | refused
    begin = _where_to_begin(found, failed) if is_of_vendor else ""
    built = (
        f"{len(units) - len(failed)} of {len(units)} C, C++ and IDL files build as they are.",
        *(f"  {unit}: {why}" for unit, why in failed.items()),
        *(f"  {unit} builds only with -D{macro}." for unit, macro in macros.items()),
        *([f"{sum(map(not_, targets.values()))} of {len(targets)} CMake targets link."] if links else []),
        *(f"  {target}: {why}" for target, why in unlinked.items()),
        f"{len(found.works)} names of the vendors' APIs are used and here.",
    )
    how = {"failed": failed, "macros": macros, "targets": targets, "refused": refused, "begin": begin}
    return Report(
        {**vars(found), "units": units, **how},
        *(built if is_of_vendor else ("No file here uses a vendor's API; nothing was compiled.",)),
        *(f"{heading}: {', '.join(rows)}" for kind, heading in _KINDS if (rows := getattr(found, kind))),
        *([f"Where to begin: {begin}"] if begin else []),
        code=Exit.FAILED if failed or unlinked or found.missing or found.modules else Exit.GOOD,
    )


def _where_to_begin(found: Found, failed: dict[str, str]) -> str:
    try:
        headers, libraries = (Path(one).name for one in found.headers), (f"lib{one}" for one in found.libraries)
        check_brought([*headers, *libraries, *found.modules])
    except MissingGuestError as error:
        return str(error)
    absent = [it[1] for why in failed.values() if (it := _ABSENT.match(why))]
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

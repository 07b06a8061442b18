"""``hbrt tour``: the files of the five-minute tour."""

from __future__ import annotations

import re
from pathlib import Path

import click

import hbrt
from hbrt.cli.tables import show_text
from hbrt.errors import BoardError, WrongUseError

_FILE = re.compile(r"^```python\n# ([\w-]+\.py)\n.*?^```$", re.DOTALL | re.MULTILINE)


@click.command(epilog="Example: hbrt tour tour")
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
def command(directory: Path) -> None:
    """Write the programs and the page of the five-minute tour into DIR, which is made if it does not exist.

    Files that already exist are kept: it is an error if one differs.
    """
    page = tour_page()
    files = {found[1]: found[0].removeprefix("```python\n").removesuffix("```") for found in _FILE.finditer(page)}
    files["tour.md"] = page
    for name, text in files.items():
        file = directory / name
        if file.exists() and file.read_text(encoding="utf-8") != text:
            raise WrongUseError(f"{file} already exists and differs: name another directory.")
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
    show_text(
        f"Wrote {len(files)} files into {directory.absolute()}. Read tour.md there, or the tour on the docs site."
    )


def tour_page() -> str:
    """The page of the tour: beside the packages in a clone, inside ``hbrt`` in a wheel.

    Raises:
        BoardError: the installation lacks it.
    """
    package = Path(hbrt.__file__).resolve().parent
    for file in (package / "_tour.md", package.parent / "docs" / "tour.md"):
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise BoardError("The tour is not installed. Reinstall hbrt.")

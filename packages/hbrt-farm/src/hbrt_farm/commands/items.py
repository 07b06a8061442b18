"""The items that ``--over`` names: files."""

from __future__ import annotations

import os
from glob import glob
from pathlib import Path

import click

PATH = "path"


def items_over(text: str) -> list[str]:
    """Absolute paths, in the order of their names, or of a Parquet file's rows.

    Args:
        text: A directory of files, a pattern, or a Parquet file with a column ``path``, whose paths are relative to it.

    Raises:
        click.UsageError: no items were found; the message says why.
    """
    where = Path(text)
    if where.is_dir():
        with os.scandir(where) as entries:
            found = sorted(entry.path for entry in entries if not (entry.is_dir() or entry.name.startswith(".")))
        why = f"The directory {text} has no files"
    elif where.suffix == ".parquet" and where.exists():
        found, why = _paths_in(where), f"{text} has no rows"
    else:
        found = sorted(one for one in glob(text, recursive=True) if not Path(one).is_dir())  # noqa: PTH207 - an absolute path
        why = f"No file matches {text}"
    if not found:
        raise click.UsageError(f"{why}: name a directory, a pattern in quotes, or a .parquet file.")
    return [str(Path(one).absolute()) for one in found]


def _paths_in(file: Path) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(file)
        if PATH not in schema.names:
            raise click.UsageError(f"{file} has no column {PATH!r}; it has {', '.join(schema.names)}.")
        rows = pq.read_table(file, columns=[PATH])[PATH].to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        raise click.UsageError(f"{file} cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    if not all(isinstance(row, str) and row for row in rows):
        raise click.UsageError(f"The column {PATH!r} of {file} has values that are not paths.")
    return [str(file.parent / row) for row in rows]

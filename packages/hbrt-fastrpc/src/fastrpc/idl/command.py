"""``hbrt idl``: the stub and the skeleton of each interface of an IDL file."""

from __future__ import annotations

from pathlib import Path

import click

from fastrpc.idl.model import IdlError
from hbrt.cli.exits import Exit
from hbrt.cli.tables import show_text


@click.command(epilog="Example: hbrt idl calc.idl --out generated")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out", metavar="DIR", default=".", type=click.Path(file_okay=False, path_type=Path), help="Output directory."
)
@click.option(
    "-I",
    "folders",
    metavar="DIR",
    multiple=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory to search for files that FILE includes; may be given several times.",
)
@click.option("--lang", type=click.Choice(["python", "c"]), help="Generate only this language.")
@click.pass_context
def command(ctx: click.Context, file: Path, out: Path, folders: tuple[Path, ...], lang: str | None) -> None:
    """Write the stubs (for programs) and the skeletons (for images) of the interfaces of FILE, in Python and C."""
    from fastrpc.idl import c_writer, python_writer
    from fastrpc.idl.parser import parse

    try:
        parsed = parse(file.read_text(encoding="utf-8"), str(file), folders)
    except (IdlError, UnicodeDecodeError) as error:
        show_text(f"{error}" if isinstance(error, IdlError) else f"{file} is not UTF-8 text: {error}.", err=True)
        ctx.exit(Exit.FAILED)
    for note in parsed.notes:
        show_text(note, err=True)
    out.mkdir(parents=True, exist_ok=True)
    writers = [writer for name, writer in (("python", python_writer), ("c", c_writer)) if lang in {None, name}]
    for writer in writers:
        for name, text in writer.files(parsed).items():
            (out / name).write_text(text, encoding="utf-8")
            show_text(out / name)

"""``hbrt cc``: the installed compiler, with the flags of a board's programs."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from hbrt.borders.guests import check_brought
from hbrt.cc.toolchain import (
    NO_LINK,
    SUPPRESSIONS,
    Flags,
    arm_flags,
    command_line,
    compiler_of,
    fitted,
    needs_suppressions,
    sources_in,
)
from hbrt.cli.exits import Exit
from hbrt.cli.tables import show_text
from hbrt.native.hexagon_flags import hexagon_assembler, hexagon_compiler, hexagon_flags, version_in
from hbrt.native.image_flags import image_flags

_OURS = {
    "--dsp": 0,
    "--sim": 0,
    "--print-flags": 0,
    "--pkg-config-dir": 0,
    "--cmake-dir": 0,
    "--sanitize": 1,
    "--target": 1,
    "-h": 0,
    "--help": 0,
}


class CompilerCommand(click.Command):
    """A command that passes its other arguments to a compiler in order, even those that look like clusters of ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Separate our options from the compiler's."""
        ours: list[str] = []
        theirs: list[str] = []
        given = iter(args)
        for one in given:
            name, equals, _ = one.partition("=")
            if name in _OURS:
                ours.append(one)
                if _OURS[name] and not equals:
                    ours += [value for value in [next(given, None)] if value is not None]
            else:
                theirs.append(one)
        return super().parse_args(ctx, [*ours, "--", *theirs])


@click.command(cls=CompilerCommand, options_metavar="[-o OUT]", epilog="Example: hbrt cc -O2 main.c && ./main")
@click.option("--dsp", "is_image", is_flag=True, help="Make an image for hbrt start --image: a shared library.")
@click.option("--sim", "is_sim", is_flag=True, help="With --dsp, make a program that measures ops without a board.")
@click.option("--sanitize", metavar="LIST", default="", help="Sanitizers, such as address,undefined.")
@click.option(
    "--target",
    type=click.Choice(["native", "hexagon"]),
    default="native",
    help="With --dsp: code for this machine, or Hexagon code with HVX, which QEMU runs.",
)
@click.option("--print-flags", is_flag=True, help="Print flags for a compiler's command line, to put after its files.")
@click.option("--pkg-config-dir", is_flag=True, help="Write hbrt.pc, and print its folder for PKG_CONFIG_PATH.")
@click.option("--cmake-dir", is_flag=True, help="Write hbrtConfig.cmake and toolchain.cmake; print their folder.")
@click.argument("arguments", metavar="FILE... [COMPILER_OPTION...]", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(
    ctx: click.Context,
    arguments: tuple[str, ...],
    sanitize: str,
    target: str,
    *,
    is_image: bool,
    is_sim: bool,
    print_flags: bool,
    pkg_config_dir: bool,
    cmake_dir: bool,
) -> None:
    """Compile and link an ARM program in C or C++ ($CC, $CXX); it runs with no environment variable.

    All other arguments are the compiler's. Without -o, a program is named after its first file; an image gets .so as
    well.
    """
    if pkg_config_dir or cmake_dir:
        from hbrt.cc.packages import write_packages

        folder = write_packages()
        show_text(folder / "cmake" / "hbrt" if cmake_dir else folder / "pkgconfig")
        return
    sources = sources_in(arguments)
    if is_sim and not is_image:
        raise click.UsageError("--sim goes with --dsp: it makes a program of DSP code.")
    is_hexagon = target == "hexagon"
    if is_hexagon and (not is_image or is_sim or sanitize):
        raise click.UsageError("--target hexagon goes with --dsp alone: it makes an image.")
    version = 0
    if is_hexagon:
        try:
            version, arguments = version_in(arguments)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        flags = Flags(*hexagon_flags(version))
    else:
        flags = Flags(*image_flags(sources, is_program=is_sim)) if is_image else arm_flags()
    if print_flags:
        show_text(" ".join([*flags.compile, *flags.link]))
        return
    _check(arguments, sources)
    if not is_image:
        arguments = _fit(arguments)
    from hbrt.native.record import remember_python

    remember_python()
    if is_image:  # findings then name a file that can be found from anywhere
        arguments = tuple(str(Path(one).absolute()) if one in sources else one for one in arguments)
    with tempfile.TemporaryDirectory() as objects:
        compiler, arguments = (
            _for_hexagon(arguments, version, objects) if is_hexagon else (compiler_of(sources), arguments)
        )
        line = command_line(compiler, flags, arguments, sanitize, ".so" if is_image and not is_sim else "")
        has_failed = _call(line, SUPPRESSIONS.encode() if needs_suppressions(flags, arguments, sanitize) else None)
    if has_failed:
        check_brought(_names(compiler, [*flags.compile, *arguments], sources))
        ctx.exit(Exit.FAILED)


def _names(compiler: list[str], arguments: Sequence[str], sources: list[str]) -> list[str]:
    """Return the names of headers and libraries that are missing: of what sources include, and what is to be linked."""
    line = [*compiler, *_with(arguments, "-I", "-isystem", "-D", "-std="), "-M", "-MG", *sources]
    headers = subprocess.run(line, check=False, capture_output=True, text=True).stdout.split() if sources else []
    folders = [Path(one.removeprefix("-L")) for one in _with(arguments, "-L")]
    own = {file.stem for folder in folders for file in folder.glob("lib*.*")}
    libraries = {f"lib{one[2:]}" for one in arguments if one.startswith("-l")}
    return [*(Path(one).name for one in headers if not Path(one).exists()), *sorted(libraries - own)]


def _with(arguments: Sequence[str], *options: str) -> list[str]:
    """Return these options among a compiler's arguments, and their values where those follow separately."""
    before = ("", *arguments)
    return [one for last, one in zip(before, arguments, strict=False) if one.startswith(options) or last in options]


def _fit(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Replace a board's arguments that do not fit this machine, and say which."""
    try:
        fit, notes = fitted(arguments)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    for note in notes:
        show_text(f"hbrt cc: {note}", err=True)
    return tuple(fit)


def _call(line: list[str], source: bytes | None = None) -> int:
    """Run a compiler, and return its exit code."""
    try:
        return subprocess.run(line, check=False, input=source).returncode
    except FileNotFoundError:
        raise FileNotFoundError(f"Compiler not found: {line[0]}. Name another in CC or CXX.") from None


def _for_hexagon(arguments: tuple[str, ...], version: int, folder: str) -> tuple[list[str], tuple[str, ...]]:
    """Return the compiler and its arguments, with assembly sources to be linked replaced by objects in a folder.

    An output to /dev/null goes to that folder, too: the compiler would leave it in the working directory.
    """
    sources = sources_in(arguments)
    before = ("", *arguments)
    arguments = tuple(
        str(Path(folder, "null")) if (flag, one) == ("-o", os.devnull) else one
        for flag, one in zip(before, arguments, strict=False)
    )
    assembly = [one for one in arguments if not one.startswith("-") and Path(one).suffix in {".s", ".S"}]
    if NO_LINK.intersection(arguments):
        is_assembly = assembly and not sources
        return hexagon_assembler(version) if is_assembly else hexagon_compiler(sources, version), arguments
    given, found = list(arguments), [one for one in arguments if one.startswith(("-I", "-D"))]
    for number, one in enumerate(assembly):
        made = str(Path(folder, f"{number}.o"))
        if not _call([*hexagon_assembler(version), *found, "-c", one, "-o", made]):
            given[given.index(one)] = made  # otherwise the linking compiler would repeat the error
    return hexagon_compiler(sources, version), tuple(given)


def _check(arguments: tuple[str, ...], sources: list[str]) -> None:
    """Refuse names of missing files."""
    if all(one.startswith("-") for one in arguments):
        if arguments and arguments[0].startswith("--") and arguments[0] != "--version":
            raise click.NoSuchOption(arguments[0])
        if not arguments:
            raise click.UsageError("No file given; use hbrt cc main.c.")
    for one in sources:
        if not Path(one).is_file():
            raise click.UsageError(f"No such file: {one}")

"""The image of the acoustic model, compiled where it is needed."""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from pathlib import Path

from hbrt.cc.toolchain import Flags, command_line, compiler_of
from hbrt.errors import BoardError
from hbrt.native.image_flags import image_flags
from hbrt.samples_dir import samples_dir


def build_image(directory: Path) -> Path:
    """Compile samples/dsp/tdnnf_image.c into a directory, as ``hbrt cc --dsp`` does; the image's file.

    It has the interface of tdnnf.idl as well where hbrt-fastrpc is installed.

    Raises:
        BoardError: it does not compile; has what the compiler said. FileNotFoundError: no compiler is here.
            NotBuiltError: hbrt was installed where none was.
    """
    folder = samples_dir() / "dsp"
    sources, more = [str(folder / "tdnnf_image.c")], []
    if find_spec("fastrpc") is not None:
        sources.append(str(_write_interface(folder / "tdnnf.idl", directory)))
        more = ["-DTDNNF_FASTRPC", f"-I{directory}", f"-I{folder}"]
    image = directory / "tdnnf.so"
    flags = Flags(*image_flags(sources))
    line = command_line(compiler_of(sources), flags, [*sources, *more, "-o", str(image)])
    done = subprocess.run(line, check=False, capture_output=True, text=True)
    if done.returncode:
        raise BoardError(f"{sources[0]} does not compile:\n{done.stderr.rstrip()}")
    return image


def _write_interface(file: Path, directory: Path) -> Path:
    """Write the header and the skeleton of an interface, as ``hbrt idl`` does; the skeleton's file."""
    from fastrpc.idl import c_writer
    from fastrpc.idl.parser import parse

    parsed = parse(file.read_text(encoding="utf-8"), str(file))
    for name, text in c_writer.files(parsed).items():
        (directory / name).write_text(text, encoding="utf-8")
    return directory / f"{parsed.name}_skel.c"

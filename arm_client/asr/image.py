"""The image of the acoustic model, compiled where it is needed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hbrt.cc.toolchain import Flags, command_line, compiler_of
from hbrt.errors import BoardError
from hbrt.native.image_flags import image_flags
from hbrt.samples_dir import samples_dir


def build_image(directory: Path) -> Path:
    """Compile samples/dsp/tdnnf_image.c into a directory, as ``hbrt cc --dsp`` does; the image's file.

    Raises:
        BoardError: it does not compile; has what the compiler said. FileNotFoundError: no compiler is here.
            NotBuiltError: hbrt was installed where none was.
    """
    source, image = str(samples_dir() / "dsp" / "tdnnf_image.c"), directory / "tdnnf.so"
    flags = Flags(*image_flags([source]))
    line = command_line(compiler_of([source]), flags, [source, "-o", str(image)])
    done = subprocess.run(line, check=False, capture_output=True, text=True)
    if done.returncode:
        raise BoardError(f"{source} does not compile:\n{done.stderr.rstrip()}")
    return image

"""The images of the acoustic model, compiled on demand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from arm_client.client import Board, private_board
from hbrt.samples_dir import samples_dir


def build_image(directory: Path) -> Path:
    """Compile samples/dsp/tdnnf_image.c into a directory; returns the image's file.

    Raises:
        SystemExit: compilation failed; the compiler's messages are on standard error.
    """
    return _compiled(directory / "tdnnf.so", ["tdnnf_image.c"])


@contextmanager
def interface_board(*, is_hexagon: bool = False) -> Iterator[tuple[Board, Any]]:
    """A board for this block only, whose image has the interface of samples/dsp/tdnnf.idl, and an open stub of it.

    Args:
        is_hexagon: Whether the image is Hexagon code with HVX, instead of code for this machine.

    Raises:
        SystemExit: as ``build_image``.
    """
    with TemporaryDirectory() as folder:
        _hbrt("idl", str(samples_dir() / "dsp" / "tdnnf.idl"), "--out", folder)
        skeleton = [f"{folder}/tdnnf_skel.c", f"-I{folder}"]
        if is_hexagon:
            image = _compiled(Path(folder) / "libtdnnf_skel.so", ["tdnnf_hvx.c", *skeleton], "--target", "hexagon")
        else:
            image = _compiled(Path(folder) / "tdnnf.so", ["tdnnf_image.c", *skeleton, "-DTDNNF_FASTRPC"])
        sys.path.insert(0, folder)
        try:
            stub = import_module("tdnnf_stub")
        finally:
            sys.path.remove(folder)
        with private_board(image, profile="sd865") as board, stub.Tdnnf() as tdnnf:
            yield board, tdnnf


def _compiled(image: Path, words: list[str], *options: str) -> Path:
    _hbrt("cc", "--dsp", *options, str(samples_dir() / "dsp" / words[0]), *words[1:], "-o", str(image))
    return image


def _hbrt(*words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "hbrt", *words], check=False, stdout=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"'hbrt {' '.join(words)}' exited with code {done.returncode}.")

"""An image in a core: loading its snapshot under the file's own name, and its modules; running its ``main()``."""

from __future__ import annotations

import ast
import linecache
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import ModuleType
from typing import Any

from dsp_server import runtime
from dsp_server.c_images.elf import HEADER_BYTES, is_elf, is_hexagon
from dsp_server.errors import ImageError
from hbrt.borders import guests
from hbrt.findings.record import Place
from hbrt.profiles.profile import active

MODULE_NAME = "hbrt_image"
_MACROS = frozenset({"HB_DSP_REGISTER_NN_ALL", "HB_DSP_REGISTER_CV_ALL"})


def load_and_run(snapshot: str, origin: str) -> None:
    """Load the image's snapshot, Python as the module it was written as, and call its ``main()``.

    Raises:
        ImageError: the image has no callable ``main``, or is one in C that does not load. An exception of the image
            itself passes through.
    """
    with Path(snapshot).open("rb") as file:
        raw = file.read(HEADER_BYTES)
    if is_elf(raw) and "dsp" in active().cores:
        os.environ |= _of_profile()
    if is_hexagon(raw):
        guests.load("hbrt.skeletons", "hexagon", f"{origin}, an image of Hexagon code,", "fastrpc")(snapshot, origin)
        return
    if is_elf(raw):
        from dsp_server.c_images.image import run_image  # a Python image does not need it

        run_image(snapshot, origin)
        return
    folder = str(Path(origin).parent)
    sys.path.insert(0, folder)  # an image may import modules of its own directory
    _import_from_text(folder)
    module = ModuleType(MODULE_NAME)
    module.__file__ = origin
    sys.modules[MODULE_NAME] = module
    source = Path(snapshot).read_text(encoding="utf-8")
    # A traceback then shows the running lines, even after a change of the file.
    linecache.cache[origin] = (len(source), None, source.splitlines(keepends=True), origin)
    tree = ast.parse(source, origin)
    for name, line in uncalled_macros(tree):
        runtime.find(
            "image",
            f"{name} at {origin}:{line} lacks its parentheses and so registers nothing. A macro of C is a "
            f"call here: write {name}().",
            Place("image", f"{origin}:{line}"),
        )
    code = compile(tree, origin, "exec")
    exec(code, module.__dict__)  # noqa: S102 - an image is the user's own program, run as the user
    main = getattr(module, "main", None)
    if not callable(main):
        raise ImageError(
            f"The image {origin} has no main(): define one that registers its ops and calls hb_dsp_start(), as the "
            "file that 'hbrt op new NAME' writes does."
        )
    main()


def _of_profile() -> dict[str, str]:
    """Variables of the core's process, and of a program beside it: what native/dsp/hap.c says of the board."""
    profile = active()
    clock_mhz = round(profile.number("cores.dsp.clock_mhz"))
    return {"HBRT_DSP_CLOCK_MHZ": str(clock_mhz), "HBRT_DSP_VTCM_BYTES": str(profile.whole("tcm.vtcm_bytes"))}


def uncalled_macros(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Name and line of each macro of C that stands without the parentheses of a call: no error in Python."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            name = getattr(node.value, "id", getattr(node.value, "attr", ""))
            if name in _MACROS:
                yield name, node.lineno


class _TextLoader(SourceFileLoader):
    """Loads a module's text: without the times of a file, Python neither reads nor writes bytecode."""

    def path_stats(self, path: str) -> Mapping[str, int]:
        raise OSError(f"No bytecode is used for {path}.")


def _import_from_text(folder: str) -> None:
    """Load modules of this directory, and of its packages, from their text from now on, not from cached bytecode.

    Python takes bytecode as current when size and second of change are equal: it would miss an edit of the same length
    within one second.

    Subdirectories that are entries of sys.path themselves, such as those of a virtual environment, are excluded.
    """
    make_finder = FileFinder.path_hook(
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (_TextLoader, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )

    def lies_in(path: str, directory: str) -> bool:
        return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)

    def hook(path: str) -> Any:
        others = (entry for entry in sys.path if entry != folder and lies_in(entry, folder))
        if not lies_in(path, folder) or any(lies_in(path, entry) for entry in others):
            raise ImportError(path)  # the next hook's
        return make_finder(path)

    sys.path_hooks.insert(0, hook)
    for path in [path for path in sys.path_importer_cache if lies_in(path, folder)]:
        del sys.path_importer_cache[path]

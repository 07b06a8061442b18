"""Loads an image into a core: its snapshot under the original file's name, its modules; then runs ``main()``."""

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
    """Load the image's snapshot, a Python one as its original module, and call its ``main()``.

    Raises:
        ImageError: the image has no callable ``main``, or is a C image that does not load. Exceptions of the image
            itself pass through.
    """
    with Path(snapshot).open("rb") as file:
        raw = file.read(HEADER_BYTES)
    if is_elf(raw) and "dsp" in active().cores:
        os.environ |= _of_profile()
    if is_hexagon(raw):
        guests.load("hbrt.skeletons", "hexagon", f"{origin}, an image of Hexagon code,", "fastrpc")(snapshot, origin)
        return
    if is_elf(raw):
        from dsp_server.c_images.image import run_image  # Python images do not need it

        run_image(snapshot, origin)
        return
    folder = str(Path(origin).parent)
    sys.path.insert(0, folder)  # an image may import modules from its own directory
    _import_from_text(folder)
    module = ModuleType(MODULE_NAME)
    module.__file__ = origin
    sys.modules[MODULE_NAME] = module
    source = Path(snapshot).read_text(encoding="utf-8")
    # Tracebacks then show the lines that run, even after the file has changed.
    linecache.cache[origin] = (len(source), None, source.splitlines(keepends=True), origin)
    tree = ast.parse(source, origin)
    for name, line in uncalled_macros(tree):
        runtime.find(
            "image",
            f"{name} at {origin}:{line} has no parentheses, so it registers nothing. C macros are functions "
            f"here: write {name}().",
            Place("image", f"{origin}:{line}"),
        )
    code = compile(tree, origin, "exec")
    exec(code, module.__dict__)  # noqa: S102 - an image is the user's own program, run as the user
    main = getattr(module, "main", None)
    if not callable(main):
        raise ImageError(
            f"The image {origin} has no main(): define one that registers the ops and calls hb_dsp_start(), as in the "
            "file that 'hbrt op new NAME' writes does."
        )
    main()


def _of_profile() -> dict[str, str]:
    """Environment of a core's process or a side program, from the profile; hap.c of hbrt-fastrpc reads it."""
    profile = active()
    clock_mhz = round(profile.number("cores.dsp.clock_mhz"))
    return {"HBRT_DSP_CLOCK_MHZ": str(clock_mhz), "HBRT_DSP_VTCM_BYTES": str(profile.whole("tcm.vtcm_bytes"))}


def uncalled_macros(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield name and line of each C macro used without call parentheses, which Python does not flag as an error."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            name = getattr(node.value, "id", getattr(node.value, "attr", ""))
            if name in _MACROS:
                yield name, node.lineno


class _TextLoader(SourceFileLoader):
    """Loads a module's source text: without a file's times, Python neither reads nor writes bytecode."""

    def path_stats(self, path: str) -> Mapping[str, int]:
        raise OSError(f"Bytecode is not used for {path}.")


def _import_from_text(folder: str) -> None:
    """From now on load modules of this directory and its packages from source text, not from cached bytecode.

    Python considers bytecode current if the size and the mtime in seconds match, so it would miss a same-length edit
    within one second.

    Subdirectories that are in sys.path themselves, such as those of a virtual environment, are excluded.
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
            raise ImportError(path)  # leave it to the next hook
        return make_finder(path)

    sys.path_hooks.insert(0, hook)
    for path in [path for path in sys.path_importer_cache if lies_in(path, folder)]:
        del sys.path_importer_cache[path]

"""Imports an image's own modules from their text, and ignores cached bytecode.

Python takes cached bytecode as current when size and second of change are equal: it would miss an edit of the same
length within one second.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from typing import Any


class _TextLoader(SourceFileLoader):
    """Loads a module's text: without the times of a file, Python neither reads nor writes bytecode."""

    def path_stats(self, path: str) -> Mapping[str, int]:
        raise OSError(f"No bytecode is used for {path}.")


def import_from_text(folder: str) -> None:
    """Load modules of this directory, and of its packages, from their text from now on.

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

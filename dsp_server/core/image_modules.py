"""Imports of an image's own modules from their text, whatever bytecode lies beside them.

Python takes cached bytecode for that of a module whose size and second of change it has: an edit that is saved within a
second of the last one, with as many bytes, would go on as it was before.
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
    """Loads a module's text: without the times of a file, Python neither looks for bytecode nor writes any."""

    def path_stats(self, path: str) -> Mapping[str, int]:
        raise OSError(f"No bytecode is used for {path}.")


def import_from_text(folder: str) -> None:
    """From now on, load modules of this directory, and of packages in it, from their text.

    Directories in it that are entries of sys.path themselves, such as those of a virtual environment, are left out.
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

"""Plugins that register layers: Python files and libraries named by HB_DNN_PLUGIN_PATH, if HB_DNN_ENABLE_DSP is 1.

A plugin runs once per process, before the first model is loaded, and calls hbDNNRegisterLayerCreator; in a library,
static objects do. The shipped one comes first, so that others may replace its layers. A library for a board's CPU is
skipped.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path

from arm_client.dnn import environment
from arm_client.dnn.errors import ModelError, one_line
from hbrt.native.elf import machine_of
from hbrt.status import Status

_VENDORS_NAME = "libhb_dsp_nn_plugin.so"


class Plugins:
    """The plugins of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a plugin may load a model
        self._loaded: set[Path] = set()
        self._is_shipped_on = False

    def load(self) -> None:
        """Run the plugins named in the environment that have not run yet; does nothing unless HB_DNN_ENABLE_DSP is 1.

        Raises:
            ModelError: CAN_NOT_OPEN_FILE: the path does not exist, or is not a plugin; API_USE_ERROR: the plugin
                raises.
        """
        text = os.environ.get("HB_DNN_PLUGIN_PATH", "")
        if not environment.is_dsp_enabled():
            if text:
                environment.warn_once("HB_DNN_PLUGIN_PATH has no effect because HB_DNN_ENABLE_DSP is not 1.")
            return
        with self._lock:
            if not self._is_shipped_on:
                from arm_client.dnn.layers import plugins_dsp_nn

                plugins_dsp_nn.register()
                self._is_shipped_on = True
            for file in _files(text):
                if file not in self._loaded:
                    self._loaded.add(file)
                    try:
                        _run(file, len(self._loaded))
                    except BaseException:
                        self._loaded.discard(file)
                        raise


plugins = Plugins()
"""The plugins of this process."""


def _files(text: str) -> list[Path]:
    """Return the plugin files of HB_DNN_PLUGIN_PATH."""
    found: list[Path] = []
    for entry in text.split(os.pathsep):
        if not entry:
            continue
        path = Path(entry)
        if path.is_dir():
            files = [file for file in path.glob("*.py") if not file.name.startswith("_")] + list(path.glob("*.so"))
            found += [file.resolve() for file in sorted(files) if not _is_boards(file)]
        elif path.is_file() or path.name == _VENDORS_NAME:
            found += [path.resolve()] if not _is_boards(path) else []
        else:
            raise ModelError(
                Status.HB_DNN_CAN_NOT_OPEN_FILE,
                f"HB_DNN_PLUGIN_PATH names {entry} (no such file or directory); name Python files, or "
                f"libraries, that register layers, separated by {os.pathsep!r}.",
            )
    return found


def _is_boards(file: Path) -> bool:
    """Whether a plugin is a library for another CPU, which is skipped with a message."""
    if file.suffix != ".so":
        return False
    with suppress(OSError):
        if machine_of(file) == machine_of(Path("/proc/self/exe")):
            return False
    stands_for = " The shipped plugin replaces it." if file.name == _VENDORS_NAME else ""
    environment.warn_once(f"The plugin {file} is a library for the board and is skipped.{stands_for}")
    return True


def _load_library(file: Path) -> None:
    """Load a library, whose static objects register its layers.

    Raises:
        ModelError: API_USE_ERROR: it cannot be loaded; carries the loader's message.
    """
    try:
        ctypes.CDLL(str(file))
    except OSError as error:
        raise ModelError(
            Status.HB_DNN_API_USE_ERROR,
            f"Cannot load the plugin {file}: {one_line(error)}. Build it with hbrt cc -shared -fPIC.",
        ) from None


def _run(file: Path, number: int) -> None:
    if file.suffix == ".so":
        _load_library(file)
        return
    name = f"hb_dnn_plugin_{number}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ModelError(
            Status.HB_DNN_CAN_NOT_OPEN_FILE,
            f"The plugin {file} is neither a Python file (.py) nor a library (.so).",
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, (Exception, SystemExit)):
            raise
        # Including sys.exit(): a plugin that gives up must not end the program.
        raise ModelError(
            Status.HB_DNN_API_USE_ERROR, f"The plugin {file} raised {type(error).__name__}: {traceback.format_exc()}"
        ) from error

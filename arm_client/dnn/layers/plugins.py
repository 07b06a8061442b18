"""Plugins: Python files that register layers. HB_DNN_PLUGIN_PATH names them, HB_DNN_ENABLE_DSP=1 turns them on.

A plugin is run once a process, before its first model is loaded, and calls hbDNNRegisterLayerCreator, as the static
objects of the board's plugin libraries do. The shipped one comes first, so that another may replace its layers.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import traceback
from pathlib import Path

from arm_client.dnn import environment
from arm_client.dnn.errors import ModelError
from hbrt.status import Status

_VENDORS_NAME = "libhb_dsp_nn_plugin.so"


class Plugins:
    """The plugins of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a plugin may load a model
        self._loaded: set[Path] = set()
        self._is_shipped_on = False

    def load(self) -> None:
        """Run those that the environment names and that have not run yet; nothing when HB_DNN_ENABLE_DSP is not 1.

        Raises:
            ModelError: CAN_NOT_OPEN_FILE: a path that is not there, or no plugin; API_USE_ERROR: a plugin that raises.
        """
        text = os.environ.get("HB_DNN_PLUGIN_PATH", "")
        if not environment.is_dsp_enabled():
            if text:
                environment.warn_once("HB_DNN_PLUGIN_PATH has no effect, because HB_DNN_ENABLE_DSP is not 1.")
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
"""Of this process."""


def _files(text: str) -> list[Path]:
    """The plugin files of HB_DNN_PLUGIN_PATH."""
    found: list[Path] = []
    for entry in text.split(os.pathsep):
        if not entry:
            continue
        path = Path(entry)
        if path.is_dir():
            found += sorted(file.resolve() for file in path.glob("*.py") if not file.name.startswith("_"))
            for library in sorted(path.glob("*.so")):
                _leave(library)
            continue
        if path.suffix == ".so":
            _leave(path)
        elif path.is_file():
            found.append(path.resolve())
        else:
            raise ModelError(
                Status.HB_DNN_CAN_NOT_OPEN_FILE,
                f"HB_DNN_PLUGIN_PATH names {entry}, which is no file and no directory; name Python files that register "
                f"layers, separated by {os.pathsep!r}.",
            )
    return found


def _leave(library: Path) -> None:
    stands_for = " The shipped plugin stands for it." if library.name == _VENDORS_NAME else ""
    environment.warn_once(f"The plugin {library} is a library for the board and is left out.{stands_for}")


def _run(file: Path, number: int) -> None:
    name = f"hb_dnn_plugin_{number}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ModelError(
            Status.HB_DNN_CAN_NOT_OPEN_FILE, f"The plugin {file} is no Python file; its name must end in .py."
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, (Exception, SystemExit)):
            raise
        # Of sys.exit() too: a plugin that gives up may not end a program that did not ask it to.
        raise ModelError(
            Status.HB_DNN_API_USE_ERROR, f"The plugin {file} raised {type(error).__name__}: {traceback.format_exc()}"
        ) from error

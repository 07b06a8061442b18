"""What programs around HB_ONNXRuntime do first: set up logging, and end with an exit code.

Source: public programs, such as yolov10_horizon/mapper/inference_image_demo.py of
https://github.com/cqu20160901/yolov10_onnx_rknn_horizon_tensorRT
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


def init_root_logger(
    file_name: str, console_level: int = logging.INFO, file_level: int = logging.DEBUG
) -> logging.Logger:
    """Log to standard error and to a file in the current directory.

    Args:
        file_name: The file's name; ".log" is appended unless it ends so.
        console_level: The lowest level on standard error.
        file_level: The lowest level in the file.
    """
    root = logging.getLogger()
    root.setLevel(min(console_level, file_level))
    console = logging.StreamHandler()
    file = logging.FileHandler(file_name if file_name.endswith(".log") else f"{file_name}.log", encoding="utf-8")
    for handler, level in ((console, console_level), (file, file_level)):
        handler.setLevel(level)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        root.addHandler(handler)
    return root


def on_exception_exit(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Log an exception of the decorated function, and end the program with the exit code -1."""

    @wraps(function)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return function(*args, **kwargs)
        except Exception:
            logging.getLogger(function.__module__).exception("%s failed.", function.__name__)
            sys.exit(-1)

    return guarded

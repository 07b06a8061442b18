"""Loading an image: a Python file with a ``main()``. A core runs a snapshot of it, under the file's own name."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

DEFAULT_IMAGE = Path(__file__).parent / "images" / "default.py"
MODULE_NAME = "hbrt_image"


class ImageError(ValueError):
    """An image file cannot be used; the message says which and why."""


def read_image(path: Path) -> str:
    """Source of an image file.

    Raises:
        ImageError: no such file, not readable, or not Python; a syntax error names its line.
    """
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ImageError(f"The image {path} cannot be read: {why}.") from None
    try:
        compile(source, str(path), "exec")
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise ImageError(f"The image {path}{line} is not valid Python: {error}.") from None
    return source


def load_and_run(snapshot: str, origin: str) -> None:
    """Load the image's snapshot as the module it was written as, and call its ``main()``.

    Raises:
        ImageError: it has no callable ``main``. What the image itself raises passes through.
    """
    sys.path.insert(0, os.path.dirname(origin))  # an image may import modules that lie beside it
    module = ModuleType(MODULE_NAME)
    module.__file__ = origin
    sys.modules[MODULE_NAME] = module
    code = compile(Path(snapshot).read_text(encoding="utf-8"), origin, "exec")
    exec(code, module.__dict__)  # noqa: S102 - an image is the user's own program, run as the user
    main = getattr(module, "main", None)
    if not callable(main):
        raise ImageError(f"The image {origin} has no main(); write one as in docs/custom-ops.md.")
    main()

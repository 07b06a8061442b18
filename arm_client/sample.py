"""Helpers that the sample programs share: exit on a failed call, read and write pictures.

Copied samples still import it from here.
"""

from __future__ import annotations

import sys
from typing import Any

from arm_client.cabi.last_error import last_error
from hbrt.samples_dir import samples_dir

PICTURE = str(samples_dir() / "arm" / "cv" / "data" / "input.png")
"""The samples' default picture."""


def problem(status: int, call: str) -> str:
    """Return the message for a failed call, for a program that continues."""
    return f"{call} returned {status}: {last_error()}"


def check(status: int, call: str) -> None:
    """Exit with a message if a call failed, like the vendor samples' macro HB_CHECK_SUCCESS.

    Args:
        status: The call's status.
        call: Its name.
    """
    if status != 0:
        sys.exit(problem(status, call))


def read_picture(file: str, *, is_gray: bool = False) -> Any:
    """Return a file's pixels, uint8: (height, width, 3) as BGR, or (height, width) in gray.

    The program exits with a message if OpenCV cannot read the file.
    """
    import cv2

    picture = cv2.imread(file, cv2.IMREAD_GRAYSCALE if is_gray else cv2.IMREAD_COLOR)
    if picture is None:
        sys.exit(f"OpenCV cannot read the picture {file}.")
    return picture


def write_picture(file: str, picture: Any) -> None:
    """Write pixels in ``read_picture``'s format, and print where; the extension selects the file format.

    The program exits with a message if the file cannot be written.
    """
    import cv2

    if not cv2.imwrite(file, picture):
        sys.exit(f"Cannot write {file}.")
    print("Wrote", file)  # noqa: T201 - a program's own output

"""What the sample programs share beside the runtime's calls: a failed call ends them, pictures come in and go out.

A sample that is copied elsewhere continues importing it from here.
"""

from __future__ import annotations

import sys
from typing import Any

from arm_client.cabi.last_error import last_error
from hbrt.samples_dir import samples_dir

PICTURE = str(samples_dir() / "arm" / "cv" / "data" / "input.png")
"""The picture that samples take when none is named."""


def problem(status: int, call: str) -> str:
    """What the runtime says of a call that failed, for a program that continues."""
    return f"{call} returned {status}: {last_error()}"


def check(status: int, call: str) -> None:
    """End the program with a sentence when a call failed: the vendor's samples have a macro HB_CHECK_SUCCESS for it.

    Args:
        status: What the call returned.
        call: Its name.
    """
    if status != 0:
        sys.exit(problem(status, call))


def read_picture(file: str, *, is_gray: bool = False) -> Any:
    """A file's pixels, uint8: (height, width, 3) in the order blue, green, red, or (height, width) in gray.

    The program ends with a sentence when OpenCV cannot read the file.
    """
    import cv2

    picture = cv2.imread(file, cv2.IMREAD_GRAYSCALE if is_gray else cv2.IMREAD_COLOR)
    if picture is None:
        sys.exit(f"{file} is not a picture that OpenCV can read.")
    return picture


def write_picture(file: str, picture: Any) -> None:
    """Write pixels as ``read_picture`` gives them, and say where; the name's ending tells the format.

    The program ends with a sentence when the file cannot be written.
    """
    import cv2

    if not cv2.imwrite(file, picture):
        sys.exit(f"{file} could not be written.")
    print("Wrote", file)  # noqa: T201 - a program's own output

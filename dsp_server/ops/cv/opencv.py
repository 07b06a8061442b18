"""OpenCV, as a core uses it: on one thread, because a core is one core; and a sentence when it is not there."""

from __future__ import annotations

try:
    import cv2
except ImportError as error:
    raise ImportError(
        f"The CV ops need OpenCV, which this Python does not have ({error}): install hbrt with its extra 'cv', as in "
        "pip install 'hbrt[cv]', and start the board again."
    ) from None

__all__ = ["cv2"]

cv2.setNumThreads(1)
cv2.ocl.setUseOpenCL(False)

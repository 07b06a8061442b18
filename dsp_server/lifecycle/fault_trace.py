"""A dead core's faulthandler traceback, cut down to the lines of the image's op."""

from __future__ import annotations

from pathlib import Path

_SIDE = Path(__file__).parents[1]  # as faulthandler writes it: symbolic links are not resolved
_CALLERS = tuple(
    f'  File "{_SIDE / name}", line '
    for name in ("core/loop.py", "core/image_loader.py", "detectors/call.py", "c_images/runtime_calls.py")
)
_RUN_IN_C = " in hbrt_dsp_run "  # in a sanitizer's frame: this function of native/dsp/image.c calls the image's


def op_lines(trace: str) -> str:
    """Return a traceback without the op's callers: the core's loop, the fork server and the daemon.

    A stack that contains no line of an image is kept whole: then the core itself failed.
    """
    kept: list[str] = []
    is_below, has_frames = False, False
    for line in trace.splitlines():
        if line.startswith("SUMMARY: "):  # from a sanitizer; a memory layout follows
            kept.append(line)
            break
        is_frame = line.startswith(("  File ", "    #"))
        if not is_frame:
            is_below = has_frames = False
        elif (line.startswith(_CALLERS) and has_frames) or _RUN_IN_C in line:
            is_below = True
        if not is_below:
            kept.append(line)
            has_frames = has_frames or is_frame
    return "\n".join(kept)

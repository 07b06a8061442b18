"""The faulthandler traceback of a dead core, cut to the lines of the image's op."""

from __future__ import annotations

from pathlib import Path

_SIDE = Path(__file__).parents[1]  # as faulthandler writes it: with unresolved links
_CALLERS = tuple(
    f'  File "{_SIDE / name}", line '
    for name in ("core/loop.py", "core/image_loader.py", "detectors/run.py", "c_images/runtime_calls.py")
)
_RUN_IN_C = " in hbrt_dsp_run "  # a sanitizer's frame: that function of native/dsp/image.c calls those of images


def op_lines(trace: str) -> str:
    """A traceback without the callers of the op: the core's loop, and the daemon in a forked core.

    A stack without a line of an image stays whole: then the core itself failed.
    """
    kept: list[str] = []
    is_below, has_frames = False, False
    for line in trace.splitlines():
        if line.startswith("SUMMARY: "):  # of a sanitizer: what follows is its memory's layout
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

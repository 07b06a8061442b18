"""What faulthandler wrote of a core that died, as far as it tells about the image: its op's lines and no others."""

from __future__ import annotations

from pathlib import Path

_CORE = Path(__file__).parents[1] / "core"  # as faulthandler has it: links on the way to it are not resolved
_CALLERS = tuple(f'  File "{_CORE / name}", line ' for name in ("loop.py", "image_loader.py"))


def op_lines(trace: str) -> str:
    """A trace without what called the op: the core's loop, and the daemon that the core is a fork of.

    A stack that has no line of an image is left whole: then the core itself is what died.
    """
    kept: list[str] = []
    is_below, has_frames = False, False
    for line in trace.splitlines():
        is_frame = line.startswith("  File ")
        if not is_frame:
            is_below = has_frames = False
        elif line.startswith(_CALLERS) and has_frames:
            is_below = True
        if not is_below:
            kept.append(line)
            has_frames = has_frames or is_frame
    return "\n".join(kept)

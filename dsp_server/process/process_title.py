"""The titles of a board's processes in ps and top."""

from __future__ import annotations

import os

_KEEP_ENVIRONMENT = "SPT_NOENV"  # setproctitle's: the title takes the place of the arguments alone


def set_title(role: str, board: str) -> None:
    """Call this process ``hbrt <role> of board <board>``: ``hbrt daemon``, ``hbrt core 0``, ``hbrt relay``."""
    os.environ[_KEEP_ENVIRONMENT] = "1"
    try:
        from setproctitle import setproctitle  # here: it loads logging, which a board's start does not need

        setproctitle(f"hbrt {role} of board {board}")
    finally:
        del os.environ[_KEEP_ENVIRONMENT]

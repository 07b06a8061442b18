"""The request to end a model task early: set from outside, read by the run."""

from __future__ import annotations

from collections.abc import Callable

import onnxruntime as ort

QUIET = 4  # onnxruntime's own log: only fatal; its errors are returned as messages


class Stop:
    """Stops one task: onnxruntime checks ``run_options.terminate`` between nodes, a plan between segments.

    Attributes:
        is_set: Whether a stop was requested.
        hook: Called by ``set``, for a run elsewhere.
    """

    __slots__ = ("_options", "hook", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self.hook: Callable[[], None] | None = None
        self._options: ort.RunOptions | None = None

    @property
    def run_options(self) -> ort.RunOptions:
        """Options of the runs in this process."""
        if (options := self._options) is None:
            options = ort.RunOptions()
            options.log_severity_level = QUIET
            # Without it onnxruntime 1.31 uses an exception to look for it at each run, which takes 40 us.
            options.add_run_config_entry("gpu_graph_id", "-1")
            self._options = options
            if self.is_set:  # once the other thread can see it
                options.terminate = True
        return options

    def set(self) -> None:
        """Request the stop."""
        self.is_set = True
        if (options := self._options) is not None:
            options.terminate = True
        if (hook := self.hook) is not None:
            hook()

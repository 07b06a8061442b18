"""The request that a model task ends early: set from outside, read by the run."""

from __future__ import annotations

from collections.abc import Callable

import onnxruntime as ort

QUIET = 4  # onnxruntime's own log: fatal alone; what it says comes back as a sentence


class Stop:
    """Stops one task: onnxruntime looks at ``run_options.terminate`` between nodes, a plan between segments.

    Attributes:
        is_set: Whether the end was asked for.
        hook: Called by ``set``, for a run that is elsewhere.
    """

    __slots__ = ("_options", "hook", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self.hook: Callable[[], None] | None = None
        self._options: ort.RunOptions | None = None

    @property
    def run_options(self) -> ort.RunOptions:
        """Of the runs in this process."""
        if (options := self._options) is None:
            options = ort.RunOptions()
            options.log_severity_level = QUIET
            # Without it onnxruntime 1.31 looks for it at each run by an exception, which costs it 40 us.
            options.add_run_config_entry("gpu_graph_id", "-1")
            self._options = options
            if self.is_set:  # after the other thread can see it
                options.terminate = True
        return options

    def set(self) -> None:
        """Ask for the end."""
        self.is_set = True
        if (options := self._options) is not None:
            options.terminate = True
        if (hook := self.hook) is not None:
            hook()

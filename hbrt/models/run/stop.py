"""The request that a model task ends early: set from outside, read by the run."""

from __future__ import annotations

from collections.abc import Callable

import onnxruntime as ort

QUIET = 4  # onnxruntime's own log: fatal alone; what it says comes back as a sentence


class Stop:
    """Stops one task: onnxruntime looks at ``run_options.terminate`` between nodes, a plan between segments."""

    __slots__ = ("hook", "run_options")

    def __init__(self) -> None:
        self.hook: Callable[[], None] | None = None  # called by ``set``, for a run that is elsewhere
        self.run_options = ort.RunOptions()
        self.run_options.log_severity_level = QUIET
        # Without it onnxruntime 1.31 looks for it at each run by an exception, which costs it 40 us.
        self.run_options.add_run_config_entry("gpu_graph_id", "-1")

    def set(self) -> None:
        """Ask for the end."""
        self.run_options.terminate = True
        if (hook := self.hook) is not None:
            hook()

    @property
    def is_set(self) -> bool:
        """Whether the end was asked for."""
        return bool(self.run_options.terminate)

"""``RKNNLite``: run a model file on the board."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rknn_api.calls import Calls, path_of
from rknn_api.container import Container
from rknn_api.errors import RknnError, RknnStatus, invalid_parameter
from rknn_api.perf.report import layers_text
from rknn_api.platforms import CoreMask, platform_of
from rknn_api.run import plugins
from rknn_api.run.custom_ops import CustomOps
from rknn_api.run.runner import Runner
from rknn_api.version import DRIVER, version_table


class RKNNLite(Calls):
    """One model file, run on the chip that it was built for.

    Calls return 0, or -1 with a message on standard error; ``inference`` returns None if it fails. ``last_error`` has
    the message of the last failure.

    Source: RKNN Toolkit Lite2 user guide (1.5.2), RKNNLite, https://github.com/rockchip-linux/rknn-toolkit2
    Emulator: ``last_error``.
    """

    def __init__(self, verbose: bool = False, verbose_file: str | Path | None = None) -> None:  # noqa: FBT001, FBT002 - theirs
        """Begin; see ``Calls``. If verbose, it prints each layer's cost once a model is ready."""
        super().__init__(verbose, verbose_file)
        self._read: Callable[[], Container] | None = None  # the loaded model, whose weights the board keeps once
        self._runner: Runner | None = None
        self._ops = CustomOps()

    def load_rknn(self, path: str | Path) -> int:
        """Read a model file; the runtime must be initialized again."""

        def read() -> None:
            self._stop()
            self._read = None
            container = Container.read(path_of(path, "path"))
            self._read = lambda: container

        return self.call("load_rknn", read)

    def init_runtime(
        self,
        core_mask: int = CoreMask.NPU_CORE_AUTO,
        target: str | None = None,
        device_id: str | None = None,
        async_mode: bool = False,  # noqa: FBT001, FBT002 - theirs
    ) -> int:
        """Make the model ready to run.

        Args:
            core_mask: NPU cores to run on; only for chips with several.
            target: The chip that the model is for; None means the same.
            device_id: Id of the device; any text selects the board itself.
            async_mode: Have ``inference`` return the outputs of the previous frame, except for the first frame.
        """
        del device_id

        def make_ready() -> None:
            if self._read is None:
                raise RknnError(RknnStatus.RKNN_ERR_FAIL, "No model is loaded; call load_rknn first.")
            container = self._read()
            platform = platform_of(container.metadata.target_platform)
            if target is not None and platform_of(str(target)) != platform:
                raise RknnError(
                    RknnStatus.RKNN_ERR_TARGET_PLATFORM_UNMATCH,
                    f"The model is for {platform.name}, but the target is {target}.",
                )
            cores = platform.cores_of(core_mask)
            self._stop()
            self._before = [] if async_mode else None
            count = platform.cores if core_mask == CoreMask.NPU_CORE_AUTO else len(cores)
            self._ops = plugins.required(container)
            self._runner = Runner(container, self._ops, count, core_mask)
            self._read = self._runner.read
            if self._runner.note:
                self._log.warning("init_runtime", self._runner.note)
            if self._log.is_verbose:
                self._log.text(layers_text(container.proto(), container.metadata, self._ops, platform, cores))

        return self.call("init_runtime", make_ready)

    def inference(
        self,
        inputs: Any,
        data_format: str | Sequence[str] | None = None,
        data_type: str | Sequence[str] | None = None,
        inputs_pass_through: Sequence[int] | None = None,
    ) -> list[Any] | None:
        """Run the model once.

        Args:
            inputs: Arrays, one for each input, not normalized, or the array of the only input. Four-dimensional arrays
                are NHWC, whatever the layout of the ONNX model.
            data_format: "nhwc" or "nchw"; or a list of them.
            data_type: No effect: arrays have their own types.
            inputs_pass_through: 1 for an input in the model's stored form, which is not supported.

        Returns:
            Arrays of the outputs in the layout of the ONNX model; None on failure.
        """
        del data_type
        found: list[Any] = []

        def run() -> None:
            if inputs_pass_through is not None and any(inputs_pass_through):
                raise invalid_parameter("inputs_pass_through is for the C API; pass real numbers or pixels here.")
            found.extend(self._in_turn(self._running().run(inputs, data_format)))

        return found if self.call("inference", run) == 0 else None

    def get_sdk_version(self) -> str | None:
        """Versions of the runtime, in the vendor's format; None before ``init_runtime``."""
        return version_table(DRIVER) if self.call("get_sdk_version", self._running) == 0 else None

    def list_support_target_platform(self, rknn_model: str | Path | None = None) -> dict[str, Any] | None:
        """The chips that a model file is for.

        Args:
            rknn_model: The file; the loaded model if None.

        Returns:
            {"support_target_platform": [names], "filled_target_platform": [names]}; None if it cannot be read.
        """
        found: list[str] = []

        def read() -> None:
            if rknn_model is not None:
                container = Container.read(path_of(rknn_model, "rknn_model"))
            elif self._read is not None:
                container = self._read()
            else:
                raise RknnError(RknnStatus.RKNN_ERR_FAIL, "No model is loaded; pass a file, or call load_rknn first.")
            found.append(container.metadata.target_platform)

        if self.call("list_support_target_platform", read):
            return None
        return {"support_target_platform": found, "filled_target_platform": found}

    def release(self) -> None:
        """Release everything."""
        self._stop()
        self._read = None
        self._log.close()

    def _stop(self) -> None:
        if self._runner is not None:
            self._runner.close()
            self._runner = self._before = None
        self._ops.close()
        self._ops = CustomOps()

    def _running(self) -> Runner:
        if self._runner is None:
            raise RknnError(RknnStatus.RKNN_ERR_FAIL, "The runtime is not initialized; call init_runtime first.")
        return self._runner

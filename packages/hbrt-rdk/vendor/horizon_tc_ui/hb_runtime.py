"""HBRuntime: HB_ONNXRuntime of the S series' and J6's conversion tools.

Source: J6 toolchain, ways of inference on x86, https://www.cnblogs.com/horizondeveloper/p/22416421
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from horizon_tc_ui.hb_onnxruntime import HB_ONNXRuntime


class HBRuntime(HB_ONNXRuntime):
    """One ONNX model, also under the name of a .bc or .hbm file.

    Args:
        model: Its path.

    Raises:
        ValueError: the file is not an ONNX model, or has operators that only the vendor's tools run.
    """

    def __init__(self, model: str | Path) -> None:
        super().__init__(model)

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, NDArray[Any]], input_offset: int = 0
    ) -> list[NDArray[Any]]:
        """Like ``HB_ONNXRuntime.run``; bytes for an int8 input are not shifted by default."""
        return super().run(output_names, input_feed, input_offset)

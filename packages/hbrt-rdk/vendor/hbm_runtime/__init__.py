"""hbm_runtime of RDK X5 and the S series, emulated by hbrt: docs/rdk.md."""

from hbm_runtime.runtime import HB_HBMRuntime
from hbm_runtime.types import QuantParams, SchedParam, hbDNNDataType, hbDNNQuantiType
from hobot_vio import surroundings

__version__ = HB_HBMRuntime.version
__all__ = ["HB_HBMRuntime", "QuantParams", "SchedParam", "hbDNNDataType", "hbDNNQuantiType"]

surroundings()

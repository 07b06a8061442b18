"""pyCauchyKesai, a public Python binding of the S series' models, emulated by hbrt: docs/rdk.md."""

from pyCauchyKesai.arrays import IONArray, IONArrayDesc, IONMemory
from pyCauchyKesai.model import CauchyKesai

from_numpy = IONArray.from_numpy_array

__all__ = ["CauchyKesai", "IONArray", "IONArrayDesc", "IONMemory", "from_numpy"]

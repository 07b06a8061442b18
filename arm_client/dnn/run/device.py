"""Device memory of a plan, and its arrays as layers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arm_client.accelerator.device_memory import DeviceMemory
from arm_client.dnn.layers.ndarray import DeviceAddress, NDArray

if TYPE_CHECKING:
    from numpy.typing import NDArray as Array


class Device(DeviceMemory):
    """Device memory that layers work in."""

    def view(self, array: Array[Any]) -> NDArray | None:
        """An array as a layer sees it; None for one outside device memory, or shadowed by a cache image (strict mode).

        A layer that flushed such an array would write the caller's stale image over its results.
        """
        phy_addr = self.phy_addr_of(array)
        if phy_addr is None:
            return None
        if self.session.blocks.is_strict:
            block = self.session.blocks.holding(phy_addr)
            if block is None or block.image is not None:
                return None
        return NDArray(array, DeviceAddress(array.__array_interface__["data"][0], phy_addr))

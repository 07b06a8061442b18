"""A plan's device memory, and its arrays as layers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arm_client.accelerator.device_memory import DeviceMemory
from arm_client.dnn.layers.ndarray import DeviceAddress, NDArray

if TYPE_CHECKING:
    from numpy.typing import NDArray as Array


class Device(DeviceMemory):
    """Device memory that layers work in."""

    def view(self, array: Array[Any]) -> NDArray | None:
        """Return an array as a layer sees it; None outside device memory, or under a cache image (strict mode).

        If a layer flushed such an array, the caller's stale image would overwrite its results.
        """
        phy_addr = self.phy_addr_of(array)
        if phy_addr is None:
            return None
        if self.session.blocks.is_strict:
            block = self.session.blocks.holding(phy_addr)
            if block is None or block.image is not None:
                return None
        return NDArray(array, DeviceAddress(array.__array_interface__["data"][0], phy_addr))

"""What an op computes with: TCM, cycle counter and iDMA engine, one set for each op that a core may have under way."""

from __future__ import annotations

from typing import NamedTuple

from dsp_server.hardware import cycles, descriptors
from dsp_server.hardware.cycles import CycleCounter
from dsp_server.hardware.descriptors import Idma
from dsp_server.hardware.tile_manager import TileManager
from hbrt import settings


class Engines(NamedTuple):
    """One set, in the order in which an op's detectors take them."""

    tile_manager: TileManager
    counter: CycleCounter
    idma: Idma

    def install(self) -> None:
        """Have the ops that run from now on find these."""
        cycles.install(self.counter)
        descriptors.install(self.idma)


def make_engines(tile_manager: TileManager, counter: CycleCounter) -> Engines:
    """A set with a TCM and a counter, and with an iDMA engine as HBRT_DMA_ORDER has it."""
    order, seed = settings.seeded("HBRT_DMA_ORDER")
    if order == "strict":
        return Engines(tile_manager, counter, Idma(counter, tile_manager))
    from dsp_server.hardware.channels import ChannelIdma

    return Engines(tile_manager, counter, ChannelIdma(counter, tile_manager, seed=seed))

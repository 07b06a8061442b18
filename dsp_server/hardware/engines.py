"""What an op computes with: TCM, cycle counter and iDMA engine, one set for each op that a core may have under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from dsp_server.hardware import cycles, descriptors
from dsp_server.hardware.cycles import CycleCounter
from dsp_server.hardware.descriptors import Idma
from dsp_server.hardware.tile_manager import TileManager
from hbrt import settings

if TYPE_CHECKING:
    from dsp_server.hardware.engine_trace import EngineTrace


class Engines(NamedTuple):
    """One set, in the order in which an op's detectors take them."""

    tile_manager: TileManager
    counter: CycleCounter
    idma: Idma

    def install(self) -> None:
        """Have the ops that run from now on find these."""
        cycles.install(self.counter)
        descriptors.install(self.idma)

    def follow_trace(self, trace: EngineTrace | None) -> None:
        """Have these note what they do from now on, or with None no more."""
        self.tile_manager.trace = self.counter.trace = self.idma.trace = trace


def make_engines(
    tile_manager: TileManager, counter: CycleCounter, on_unknown: Callable[[str, str], None] | None = None
) -> Engines:
    """A set with a TCM and a counter, and with an iDMA engine as HBRT_DMA_ORDER has it.

    ``on_unknown`` is the engine's.
    """
    order, seed = settings.seeded("HBRT_DMA_ORDER")
    if order == "strict":
        idma = Idma(counter, tile_manager)
    else:
        from dsp_server.hardware.channels import ChannelIdma

        idma = ChannelIdma(counter, tile_manager, seed=seed)
    idma.on_unknown = on_unknown
    return Engines(tile_manager, counter, idma)

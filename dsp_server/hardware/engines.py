"""What an op computes with: TCM, cycle counter and iDMA engine, one set for each op in progress on a core."""

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
    """One set, in the order in which an op's detectors expect it."""

    tile_manager: TileManager
    counter: CycleCounter
    idma: Idma

    def install(self) -> None:
        """Make these the current engines for ops that run from now on."""
        cycles.install(self.counter)
        descriptors.install(self.idma)

    def follow_trace(self, trace: EngineTrace | None) -> None:
        """Trace what these engines do from now on; None stops it."""
        self.tile_manager.trace = self.counter.trace = self.idma.trace = trace


def make_engines(
    tile_manager: TileManager, counter: CycleCounter, on_unknown: Callable[[str, str], None] | None = None
) -> Engines:
    """Make a set with a TCM, a counter, and the kind of iDMA engine that HBRT_DMA_ORDER selects.

    ``on_unknown`` is passed to the engine.
    """
    order, seed = settings.seeded("HBRT_DMA_ORDER")
    if order == "strict":
        idma = Idma(counter, tile_manager)
    else:
        from dsp_server.hardware.channels import ChannelIdma

        idma = ChannelIdma(counter, tile_manager, seed=seed)
    idma.on_unknown = on_unknown
    return Engines(tile_manager, counter, idma)

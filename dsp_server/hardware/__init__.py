"""The hardware of a DSP core: tightly coupled memory, the tile manager, iDMA and a cycle counter."""

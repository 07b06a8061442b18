"""What a DSP core has: tightly coupled memory, the tile manager, iDMA and a cycle counter."""

"""What a core's process runs: interfaces that an image registers, and images as Hexagon code."""

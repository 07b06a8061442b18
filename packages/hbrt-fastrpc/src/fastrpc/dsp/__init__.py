"""What a core's process runs: the interfaces that an image registers, and images in Hexagon code."""

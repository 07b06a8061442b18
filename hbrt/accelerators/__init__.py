"""Models of accelerators: layers, published figures, and the time that a layer takes."""

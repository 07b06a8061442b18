"""Models with Python's habits: ``load``, tensors, buffers."""

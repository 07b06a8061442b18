"""The Pythonic model API: ``load``, tensors, buffers."""

"""Runs a graph: onnxruntime's sessions, and layers between them."""

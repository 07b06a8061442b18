"""Run a graph: onnxruntime sessions, and layers between them."""

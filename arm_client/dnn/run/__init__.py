"""Run a model's graph: its steps, onnxruntime sessions, and the buffers between them."""

"""Running a model's graph: its steps, sessions of onnxruntime, and the buffers between them."""

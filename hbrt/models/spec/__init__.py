"""What a model says: its graph, types, quantization."""

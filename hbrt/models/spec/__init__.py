"""A model's specification: graph, types, quantization."""

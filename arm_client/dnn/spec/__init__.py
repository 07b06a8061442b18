"""The description of a model: tensors, types, quantization and the graph."""

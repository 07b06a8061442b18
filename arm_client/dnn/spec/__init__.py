"""What a model's file says: tensors, types, quantization and the graph."""

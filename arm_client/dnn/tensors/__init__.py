"""The memory of tensors and pictures: where it lies, and what a model is fed."""

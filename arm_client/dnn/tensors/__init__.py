"""Memory of tensors and pictures: where it is, and what the model receives."""

"""onnx_edit: give a model's inputs and outputs other dimensions, by a formula such as ``a,b,c,d->1,a,d,b,c``."""

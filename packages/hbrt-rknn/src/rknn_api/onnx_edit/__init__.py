"""onnx_edit: change the dimensions of a model's inputs and outputs, by a formula such as ``a,b,c,d->1,a,d,b,c``."""

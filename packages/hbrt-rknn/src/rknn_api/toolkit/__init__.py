"""RKNN-Toolkit2's Python API: from an ONNX model to a model file, and its simulation."""

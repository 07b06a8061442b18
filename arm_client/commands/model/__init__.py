"""``hbrt model``: ONNX files that replace a board's models."""

"""``hbrt model``: ONNX files in the place of a board's models."""

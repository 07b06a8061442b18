"""Models of ONNX on onnxruntime, below every vendor's API: graphs, layers of a program, runs over given memory."""

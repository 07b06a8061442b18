"""Models of ONNX on onnxruntime, below every vendor's API: graphs, layers of a program, runs over given memory."""

import os

# From 1.31 on onnxruntime reports its use to its vendor, keeps a number of the machine in the user's home, and has a
# thread for it, because of which a child of fork() hangs in its exit(). It reads this when it is loaded, which is after
# here; a program that wants the reports sets it to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

"""ONNX models on onnxruntime, beneath every vendor's API: graphs, program layers, runs in given memory."""

import os

# Since 1.31 onnxruntime sends usage reports to its vendor, stores a machine id in the user's home, and runs a thread
# for it, which makes a child of fork() hang in exit(). It reads this variable when loaded, which is after this; a
# program that wants the reports sets it to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

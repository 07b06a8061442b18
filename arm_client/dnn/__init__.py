"""The DNN runtime: models on virtual BPU cores, with layers that may run on the DSP.

The C names (hbDNN*) are those of ``arm_client``; ``load`` gives models with Python's habits, and a layer of
a program's own begins with ``Layer`` or ``DspLayer``. ``__init__.pyi`` lists the names; what loads onnxruntime is
loaded when it is first used.
"""

import os

from hbrt.lazy import attach

# From 1.31 on onnxruntime reports its use to its vendor, and keeps a number of the machine in the user's home. It reads
# this when it is loaded, which is after here; a program that wants the reports sets it to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__getattr__, __dir__, __all__ = attach(__name__, __file__)

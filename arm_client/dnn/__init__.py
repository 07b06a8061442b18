"""The DNN runtime: models on virtual BPU cores, with layers that may run on the DSP.

The C names (hbDNN*) are those of ``arm_client``; ``load`` gives models with Python's habits, and a layer of
a program's own begins with ``Layer`` or ``DspLayer``. ``__init__.pyi`` lists the names; what loads onnxruntime is
loaded when it is first used.
"""

import hbrt.models  # noqa: F401 - before onnxruntime, which reads the environment when it is loaded
from hbrt.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

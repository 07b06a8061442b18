"""The DNN runtime: models on virtual BPU cores, with layers that may run on the DSP.

The C names (hbDNN*) are those of ``arm_client``; ``load`` returns models with a Python interface; derive your own
layers from ``Layer`` or ``DspLayer``. ``__init__.pyi`` lists the names; modules that need onnxruntime are loaded on
first use.
"""

import hbrt.models  # noqa: F401 - before onnxruntime, which reads the environment when it is loaded
from hbrt.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

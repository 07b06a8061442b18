"""RKNN on hbrt's board: the runtime's C functions, and the toolkit behind the packages ``rknn`` and ``rknnlite``.

``__init__.pyi`` lists the names.
"""

import hbrt.models  # noqa: F401 - before onnxruntime, which reads the environment when it is loaded
from hbrt.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

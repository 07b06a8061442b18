"""The ARM side: the vendor's C names (``import arm_client as hb``) and ``connect()`` for the Python API.

``__init__.pyi`` lists the names. Parts that need numpy, onnx or concurrent.futures are loaded on first use: memory and
DSP calls do not need them.
"""

# Loaded here, so that a first call loads nothing: another thread could fork in the middle.
from arm_client import dsp, sys  # noqa: F401
from hbrt import settings
from hbrt.lazy import EXTRA_OF, attach

if settings.is_given("HBRT_SCHEDULE"):
    from hbrt.blocking import install

    install()  # before the program creates its first lock

__getattr__, __dir__, __all__ = attach(__name__, __file__, optional="arm_client.dnn.", libraries=EXTRA_OF)

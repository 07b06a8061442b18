"""The DSP side: what images and ops import. ``from dsp_server import hb_dsp_register_fn, ...``.

``__init__.pyi`` lists the names. They are loaded on first use: the daemon and the verbs are also in this package and
need none of them.
"""

from hbrt.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

"""The DSP side: what an image and an op import. ``from dsp_server import hb_dsp_register_fn, ...``.

``__init__.pyi`` lists the names. They are loaded when they are first used: the daemon and the verbs live in this
package and need none of them.
"""

from hbrt.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

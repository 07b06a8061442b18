"""FastRPC's CPU side: the vendor's C names, and ``Interface``, the base class of the stubs that ``hbrt idl`` generates.

``__init__.pyi`` lists the names.
"""

from hbrt.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

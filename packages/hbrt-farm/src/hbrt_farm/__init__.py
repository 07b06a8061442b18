"""A farm: many private boards, on this machine or on a Ray cluster, that process items in parallel.

``__init__.pyi`` lists the names; Ray is loaded when a farm starts.
"""

from hbrt.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

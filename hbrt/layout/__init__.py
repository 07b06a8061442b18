"""The layout of parameter structures: one description for every kind of declaration, and its problems.

`structure` has the description; `ctypes_class`, `numpy_dtype` and `c_declaration` make one; `rules` finds what two
sides would read differently. No board and no socket.
"""

CPP_SUFFIXES = (".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx")
"""Ends of the names of files that are read as C++."""
C_SUFFIXES = (".c", ".h", *CPP_SUFFIXES)
"""Ends of the names of files that have C declarations."""

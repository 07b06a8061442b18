"""The layout of parameter structures: one description for every kind of declaration, and checks.

`structure` defines the description; `ctypes_class`, `numpy_dtype` and `c_declaration` create one; `rules` finds what
the two sides would read differently. Needs neither a board nor a socket.
"""

CPP_SUFFIXES = (".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx")
"""File name suffixes read as C++."""
C_SUFFIXES = (".c", ".h", *CPP_SUFFIXES)
"""File name suffixes of C declarations."""

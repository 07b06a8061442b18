"""``hbrt cc``: compiles and links what is in C or C++ for a board."""

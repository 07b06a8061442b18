"""``hbrt cc``: compile and link C or C++ code for a board."""

"""Images in C and C++: shared libraries whose functions call the same runtime as Python images."""

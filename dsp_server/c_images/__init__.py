"""Images in C and C++: shared libraries whose functions call the runtime that Python images call."""

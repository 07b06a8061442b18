"""FastRPC for programs in C: what libhbrt.so calls, and what it needs to call again without Python."""

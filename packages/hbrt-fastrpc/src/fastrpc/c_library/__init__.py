"""FastRPC for programs in C: what libhbrt.so calls, and what it needs to repeat a call without Python."""

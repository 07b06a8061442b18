"""FastRPC for programs in C: what libcdsprpc.so calls, and what it needs to repeat a call without Python."""

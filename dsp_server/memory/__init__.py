"""The daemon's side of device memory: who owns which block, and what is free."""

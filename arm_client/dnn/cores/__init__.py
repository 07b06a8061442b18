"""The virtual BPU cores and their tasks."""

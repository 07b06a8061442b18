"""The virtual BPU cores and the tasks that they run."""

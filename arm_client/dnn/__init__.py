"""The DNN runtime: models on virtual BPU cores, with layers that may run on the DSP."""

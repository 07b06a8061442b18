"""Published run times beside the modelled ones: of models on accelerators, and of CenterPoint's steps on a DSP."""

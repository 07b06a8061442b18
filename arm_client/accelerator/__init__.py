"""Models on a board's accelerator cores, for every API that runs models."""

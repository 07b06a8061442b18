"""Turn a model file into a model that can run."""

"""From a model's file to a model that can be run."""

"""Load a file into a checked model."""

"""From a file to a checked model."""

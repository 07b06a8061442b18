"""The messages between processes, as bytes: schemas and codecs. Pure functions."""

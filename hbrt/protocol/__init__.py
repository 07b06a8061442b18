"""Messages between processes as bytes: schemas and codecs. Pure functions."""

"""What processes say to each other, as bytes: schemas and codecs. Pure functions."""

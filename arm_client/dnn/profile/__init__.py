"""Times of a model's steps, and the files they are written to."""

"""A core's process: it loads an image, claims tasks, runs ops and answers."""

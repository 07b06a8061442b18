"""The process of a core: it loads an image, claims tasks, runs ops and answers."""

"""A model file, run: what programs give becomes the graph's inputs, and the graph runs with the program's own ops."""

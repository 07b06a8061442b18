"""Running a model file: converts the program's inputs for the graph, and runs the graph with the program's own ops."""

"""A board's wait graph: the records of one moment, their graph, and sentences. Pure."""

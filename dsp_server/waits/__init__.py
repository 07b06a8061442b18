"""The wait graph of a board: records of one moment, the graph of them, sentences. Pure."""

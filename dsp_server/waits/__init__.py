"""Who waits for whom on a board: records of one moment, the graph of them, sentences. Pure."""

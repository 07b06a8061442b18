"""The ``hbrt`` verbs that start, stop and inspect a board, one file per verb."""

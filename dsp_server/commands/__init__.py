"""The verbs of ``hbrt`` that start, stop and look at a board: one file a verb."""

"""The verbs of ``hbrt`` that start, stop and inspect a board: one file for each verb."""

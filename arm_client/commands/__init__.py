"""The verbs of ``hbrt`` that run ARM programs: one file a verb."""

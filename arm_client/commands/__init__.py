"""The verbs of ``hbrt`` that run ARM programs: one file per verb."""

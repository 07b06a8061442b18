"""``hbrt doctor``: one file for each group of checks."""

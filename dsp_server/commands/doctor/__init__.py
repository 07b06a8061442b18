"""``hbrt doctor``: one file per group of checks."""

"""Tasks of some commands that another board runs (HBRT_ROUTE)."""

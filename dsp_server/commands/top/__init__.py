"""``hbrt top``: a board while it works."""

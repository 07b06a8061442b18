"""``hbrt web``: a board in a browser of this machine."""

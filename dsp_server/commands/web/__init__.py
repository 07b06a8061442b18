"""``hbrt web``: show a board in a browser on this machine."""

"""``hbrt top``: watch a board at work."""

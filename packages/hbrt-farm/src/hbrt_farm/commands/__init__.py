"""``hbrt farm``: programs, ops and models over many items, on many boards."""

"""``hbrt mem``: a board's memory, and who holds it."""

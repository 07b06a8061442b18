"""``hbrt run``: sample programs on a board."""

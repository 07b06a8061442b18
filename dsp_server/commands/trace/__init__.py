"""``hbrt trace``: what a board has done, as a timeline."""

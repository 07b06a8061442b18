"""``hbrt op``: a new op from a template, and an op against its reference."""

"""``hbrt port``: what a program's tree needs, what of it is here, and how it builds as it is."""

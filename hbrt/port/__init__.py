"""``hbrt port``: what a program's tree needs, what is available, and how it builds unchanged."""

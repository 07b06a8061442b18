"""Programs for who works on hbrt itself; no part of the wheel."""

"""``hbrt tasks``: what a board has done."""

"""``hbrt tasks``: the tasks that a board has ended."""

"""State of an attached process: the link to the daemon, its tasks, its waiting threads."""

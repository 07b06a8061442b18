"""What every attached process has: the link to the daemon, its tasks, its waiting threads."""

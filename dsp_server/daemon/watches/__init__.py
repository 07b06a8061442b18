"""What the daemon looks at from time to time, outside the path of a task."""

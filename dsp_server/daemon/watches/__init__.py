"""What the daemon checks from time to time, outside the path of tasks."""

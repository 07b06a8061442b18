"""The task table in the DDR, and its rules: states and records, the order of tasks, doorbells, polling, the history."""

"""The task table in the DDR and its rules: states and records, task order, doorbells, polling, history."""

"""This process's attachments: one session per board, and the callbacks of its tasks."""

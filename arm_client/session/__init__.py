"""This process's attachments: one session a board, and the callbacks of its tasks."""

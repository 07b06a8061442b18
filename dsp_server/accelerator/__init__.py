"""What accelerator cores run: model sessions, for all programs of the board."""

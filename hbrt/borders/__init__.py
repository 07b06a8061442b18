"""Text, files and exceptions from outside, checked where they enter or leave hbrt."""

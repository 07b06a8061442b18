"""What comes from outside: texts, files and exceptions of others, on their way in and out."""

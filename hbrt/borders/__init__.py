"""Foreign texts, files and exceptions, on their way in and out."""

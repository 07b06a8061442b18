"""What a program notes while its board is traced. See hbrt/trace for the files."""

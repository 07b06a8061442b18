"""The C parts as built: the mailbox for this process, libraries and headers for C programs."""

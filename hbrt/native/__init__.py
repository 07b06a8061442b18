"""The parts in C, where they were built: the mailbox for this process, libraries and headers for C programs."""

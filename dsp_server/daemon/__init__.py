"""The daemon of a board: the clients' leases, the control socket, and the supervisor over both."""

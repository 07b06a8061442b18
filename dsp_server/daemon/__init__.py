"""A board's daemon: the clients' leases, the control socket, and the supervisor above both."""

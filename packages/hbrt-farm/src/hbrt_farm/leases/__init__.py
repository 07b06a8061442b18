"""A farm's leases: a pool of boards, and a server that gives each program one for its lifetime."""

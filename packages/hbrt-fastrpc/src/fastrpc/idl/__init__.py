"""``hbrt idl``: reads an interface in FastRPC's IDL, and writes its stub and skeleton in Python and C."""

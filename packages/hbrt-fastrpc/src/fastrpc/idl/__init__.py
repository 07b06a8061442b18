"""``hbrt idl``: reads an interface in FastRPC's IDL, and generates its stub and skeleton in Python and C."""

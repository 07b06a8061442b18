"""Packaged ops; the registry names them and a core imports what it runs."""

"""Packaged ops; the registry names them, and a core imports those that it runs."""

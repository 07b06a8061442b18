"""Packaged ops, one file each; the registry names them and a core imports what it runs."""

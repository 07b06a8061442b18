"""Multimedia of RDK Ultra, emulated by hbrt: ``from hobot_spdev import libsppydev``."""

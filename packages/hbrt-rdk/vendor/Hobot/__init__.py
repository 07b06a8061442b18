"""The 40 pins of RDK boards, emulated by hbrt: ``import Hobot.GPIO``."""

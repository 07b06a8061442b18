"""The models of RDK boards, emulated by hbrt: ``from hobot_dnn import pyeasy_dnn``."""

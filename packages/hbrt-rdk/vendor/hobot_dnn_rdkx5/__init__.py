"""The models of RDK X5, emulated by hbrt: ``from hobot_dnn_rdkx5 import pyeasy_dnn``."""

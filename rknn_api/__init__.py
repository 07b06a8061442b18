"""RKNN on hbrt's board: model files, the toolkit and the run time behind the packages ``rknn`` and ``rknnlite``."""

"""The C names ``hbDNN*`` and what stands behind their handles and arguments."""

"""The C names ``hbDNN*``, and the objects for their handles and arguments."""

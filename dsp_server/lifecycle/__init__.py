"""The life cycle of cores: starting, watching, restarting, changing the image, ending."""

"""The lives of cores: starting, watching, restarting, changing the image, ending."""

"""Where the programs that tools.compatibility runs find a sitecustomize."""

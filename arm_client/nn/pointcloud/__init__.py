"""Point clouds as Python calls: pillars, sweeps, pictures and a numpy reference."""

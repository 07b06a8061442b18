"""Point clouds as Python calls: pillars, sweeps, pictures and a plain numpy reference."""

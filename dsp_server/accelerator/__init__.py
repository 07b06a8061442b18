"""What accelerator cores run: sessions of models, for every program of the board."""

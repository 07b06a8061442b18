"""How the modeled times agree with published ones: the figures, the networks they are of, the fit, the goals."""

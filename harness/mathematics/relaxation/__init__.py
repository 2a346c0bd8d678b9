"""The Gaussian relaxation of binary models: its density, the choice of its diagonal, log Z from its draws."""

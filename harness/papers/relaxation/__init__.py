"""Zhang, Sutton, Storkey and Ghahramani, "Continuous Relaxations for Discrete Hamiltonian Monte Carlo", NIPS 2012."""

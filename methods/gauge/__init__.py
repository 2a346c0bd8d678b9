"""Lower bounds on Z from gauges of Forney-style models: G-MF, G-BP and its corrections.

Ahn, Chertkov and Shin, "Gauging Variational Inference", NIPS 2017 (J. Stat. Mech. 2019). A gauge is a pair of inverse
2x2 matrices on every edge; it leaves Z unchanged, and wherever it keeps all tables non-negative, every partial sum of
the gauged model is a lower bound on Z.
"""

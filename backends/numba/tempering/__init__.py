"""Parallel tempering in compiled code: sweeps of all replicas, what they tell, and swaps, step after step in one call.

kernel.py    the kernel as `spinbench` calls it: state, statistics, adaptation
swaps.py     swaps of rungs and what neighbouring rungs tell of each other
looked_up.py sweeps of binary pairwise models of up to six neighbours, by look-ups in rung_tables.py
replicas.py  the same of others, and of any factor graph, in vectors over ladders, each lane at a β of its own
"""

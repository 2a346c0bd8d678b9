"""The heaviest state as what is asked for (MAP): exactly by elimination, or by annealing chains below β = 1."""

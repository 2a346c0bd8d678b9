"""Gibbs sampling in compiled code: one kernel, whose five forms of sweeps suit different models and numbers of chains.

A form is a file: its compiled loops, `run_*(tables, asked, steps, chains)`, and below them its class, which says how it
keeps chains and makes its tables. All draw from the same conditional probabilities; `kernel.choose` says which runs:

    dense           dense.py          long rows: fields are kept, and a row of W is added when its row flips
    pattern_lanes   pattern_lanes.py  from 8 chains on, up to 6 neighbours a row: probabilities are looked up by the
                                      neighbours' states, in vectors of 32 chains; also all of precision_bits
    lanes           lanes.py          from 16 chains on: vectors over chains
    pattern_rows    pattern_rows.py   fewer chains, up to 6 neighbours, small models: looked up row by row
    sites           sites.py          the rest: vectors over the rows of a colour or level
    single_updates  single_updates.py no sweeps: random scans, single updates, one variable after the other

What several of them stand on:

    kernel.py         the kernel as `spinbench` calls it: state, threads, which form runs for so many chains
    form.py           what a form is, what its loops are given; the model row by row (`Flat`), and what tables are
                      made from (`Source`)
    looks.py          what log Z asks beside the chains of any form, and chains at other temperatures
    bands.py          the model by blocks of rows and shifts of neighbours: sites
    patterns.py       tables of neighbours' patterns: pattern_lanes, pattern_rows
    shared.py         compiled pieces of several forms: fields, draws, sums

docs/explanations/gibbs-forms.md has what each form gains.
"""

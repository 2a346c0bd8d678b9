"""Mean field on Forney models in compiled code: `kernel` is the engine, `fields` the sweeps, `network` the arrays."""

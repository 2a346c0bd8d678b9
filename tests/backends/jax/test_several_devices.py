"""Several devices, which JAX makes of one CPU, have parts of the chains, and give what one device gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import json, sys
import jax, numpy as np
import spinbench.backends.jax
from spinbench import run
from spinbench.backends.jax import JaxBackend
from spinbench.backends.jax.packed_gibbs import PackedGibbsKernel
from spinbench.models import generators

if len(jax.devices()) > 1:  # as GPUs, which tell their memory, so that programs are compiled ahead
    spinbench.backends.jax.free_bytes = lambda device: 2**40
PackedGibbsKernel.devices = frozenset({"cpu", "gpu"})
model = generators.grid(4, 4, 0.5, 0.5, seed=1)
backend = JaxBackend()
split = backend.split_chains(backend.to_device(np.zeros((3, 4))))
found = {"devices": len(jax.devices()), "parts": len(split.addressable_shards), "results": []}
cells = ("gibbs", 128, "native"), ("gibbs", 33, "native"), ("gibbs", 4, "generic")
for method, chains, tier in cells:
    result = run(model, method, "jax", 40, chains=chains, seed=5, tier=tier)
    found["results"].append([result.tier, result.log_z, np.asarray(result.marginals).tolist()])
print(json.dumps(found))
"""


def results(count):
    flags = f"--xla_force_host_platform_device_count={count}"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_devices():
    one, two = results(1), results(2)
    assert (one["devices"], one["parts"], two["devices"], two["parts"]) == (1, 1, 2, 2)
    for (tier, log_z, marginals), (again, log_z_again, marginals_again) in zip(
        one["results"], two["results"], strict=True
    ):
        assert tier == again
        # Vector units round exponentials of other numbers of chains differently.
        assert np.allclose(marginals, marginals_again, rtol=1e-12)
        assert log_z == pytest.approx(log_z_again, rel=1e-9)
    assert one["results"][0][2] == two["results"][0][2], "sums of integers"

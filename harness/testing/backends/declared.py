"""Checks of what a backend says of itself: name, capabilities, modules, precisions, devices."""

from __future__ import annotations

import os
import subprocess
import sys

from spinbench.errors import UnsupportedError
from spinbench.inference import kernels, registry
from spinbench.testing.backends import arrays
from spinbench.testing.check import CheckError, require, require_refusal

CAPABILITIES = frozenset({"arrays", "compiled", "loop", "grad", "jax", "f32", "f64", "gpu"})


def check_declaration(name: str) -> None:
    """Class attributes, and that its module imports no framework."""
    cls = registry.backend_class(name)
    require(
        cls.provides <= CAPABILITIES,
        f"provides={set(cls.provides - CAPABILITIES)} is unknown; {sorted(CAPABILITIES)} are known",
    )
    for module in cls.requires:
        require(isinstance(module, str) and module, f"requires={cls.requires!r}; a tuple of module names is needed")
    for program in cls.programs:
        require(isinstance(program, str) and program, f"programs={cls.programs!r}; a tuple of names is needed")
    frameworks = [module for module in cls.requires if module.partition(".")[0] != "numpy"]
    code = (
        "import sys; from spinbench.inference import registry;"
        f"registry.backend_class({name!r}); print([m for m in {frameworks!r} if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-P", "-c", code]  # a folder here that is named as the module is not the module
    process = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    require(process.returncode == 0, f"importing it in a fresh process fails: {process.stderr[-300:]}")
    require(
        process.stdout.strip() == "[]",
        f"importing its module imports {process.stdout.strip()}; do so in the constructor",
    )


def check_construction(name: str) -> None:
    """Precisions and devices: what is offered works, what is not is refused."""
    cls = registry.backend_class(name)
    for precision in arrays.available_precisions(name):
        instance = cls(precision=precision)
        require(instance.precision == precision, f"precision={precision} became {instance.precision}")
        usual = kernels.device_of(cls)
        require(instance.device == usual, f"the default device is {instance.device}; {usual} is expected")
    first_precision = arrays.available_precisions(name)[0]
    require_refusal(lambda: cls(precision=first_precision, device="no-such-device"), "device=no-such-device")
    if "gpu" not in cls.provides:
        require_refusal(lambda: cls(precision=first_precision, device="gpu"), "device=gpu, which is not in provides,")
        return
    try:
        instance = cls(precision=first_precision, device="gpu")
    except UnsupportedError:  # there is none here
        return
    except Exception as error:  # a framework's own
        wrong = f"device=gpu, which is in provides, raises {type(error).__name__}: {error}"
        raise CheckError(f"{wrong}; where there is none, an UnsupportedError is needed") from error
    require(instance.device == "gpu", f"device=gpu became {instance.device}")

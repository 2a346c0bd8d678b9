"""What kernels use of Numba and llvmlite beside their exported interfaces, and who loads SciPy's linear algebra."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest
from llvmlite import ir
from numba.core import caching, registry

from spinbench.backends import numba as backend
from spinbench.backends.numba.kernel_cache import KernelLocator

PUBLIC = {"numba", "numba.extending", "llvmlite"}
# Names outside of `PUBLIC`, and the files that import them.
PRIVATE = {
    # arrays and tuples inside intrinsics
    "numba.core.cgutils": {"simd/arrays.py", "simd/checks.py", "simd/vector_sums.py"},
    "numba.np.arrayobj.make_array": {"simd/arrays.py", "simd/checks.py", "simd/memory.py"},
    "numba.np.arrayobj.populate_array": {"simd/arrays.py"},
    # intrinsics that Python calls while it generates code
    "numba.core.extending._Intrinsic": {"simd/vectors.py"},
    # what is replaced while a module is imported, for time alone
    "numba.np.linalg": {"compiling.py"},
    "numba.np.arraymath": {"compiling.py"},
    # settings, errors, events and the lock around compiling: named in Numba's documentation, but not exported
    "numba.core.compiler_lock.global_compiler_lock": {"kernel_cache.py"},
    "numba.core.config": {"kernel_cache.py", "machine_code.py"},
    "numba.core.errors.TypingError": {"simd/memory.py"},
    "numba.core.event": {"compiling.py"},
}


def test_private_names_of_numba_are_listed() -> None:
    found: dict[str, set[str]] = {}
    folder = Path(backend.__file__).parent
    for file in folder.rglob("*.py"):
        tree = ast.parse(file.read_text())
        guards = [
            node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        ]
        for_types = {id(node) for guard in guards for node in ast.walk(guard)}
        for node in ast.walk(tree):
            module = node.module if isinstance(node, ast.ImportFrom) and id(node) not in for_types else None
            if module and module.split(".")[0] in {"numba", "llvmlite"} and module not in PUBLIC:
                for name in node.names:
                    found.setdefault(f"{module}.{name.name}", set()).add(file.relative_to(folder).as_posix())
    assert found == PRIVATE


def test_no_private_attribute_of_numba_is_read() -> None:
    folder = Path(backend.__file__).parent
    read = {
        ast.unparse(node)
        for file in folder.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute)
        and ast.unparse(node).startswith(("nb._", "numba._", "numba.core", "nb.core"))
    }
    assert not read


def test_the_code_generator_tells_the_processors_features() -> None:
    """`simd.memory.look_up` chooses between an instruction and loads by them."""
    code_generator = registry.cpu_target.target_context.codegen()
    assert hasattr(code_generator, "magic_tuple"), "simd/memory.py: Numba's code generator has no magic_tuple"
    features = code_generator.magic_tuple()[2]
    assert isinstance(features, str), f"simd/memory.py: magic_tuple()[2] is no text of features, but {features!r}"


def test_addresses_are_built_of_a_vector_of_indices() -> None:
    """`simd.memory.gather` says the element type to llvmlite, which then asks nothing of the indices."""
    element, lanes = ir.DoubleType(), 4
    bases, places = ir.VectorType(element.as_pointer(), lanes), ir.VectorType(ir.IntType(32), lanes)
    function = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), [bases, places]), "gather")
    builder = ir.IRBuilder(function.append_basic_block())
    addresses = builder.gep(function.args[0], [function.args[1]], source_etype=element)
    assert addresses.type == bases, "simd/memory.py: addresses of a vector of indices are no vector of llvmlite's"
    assert f"getelementptr double, {bases} " in str(addresses)


def test_numba_asks_the_locator_of_kernels_for_what_it_has() -> None:
    """Numba's own locators have the attributes and methods that `kernel_cache.KernelLocator` repeats."""
    source = inspect.getsource(caching)
    assert "_locator._py_file" in source, "kernel_cache.py: Numba does not read _py_file of its locators"
    missing = caching._CacheLocator.__abstractmethods__ - vars(KernelLocator).keys()
    assert not missing, f"kernel_cache.py: Numba's locators have {missing}, KernelLocator has not"


@pytest.mark.parametrize(
    "name", ["compile", "enable_caching", "stats"], ids=lambda name: f"kernel_cache.py: Dispatcher.{name}"
)
def test_dispatchers_have_what_the_guard_of_compilation_calls(name: str) -> None:
    dispatcher: Any = numba.njit(lambda x: x)
    assert hasattr(dispatcher, name)
    assert dispatcher.stats._fields == ("cache_path", "cache_hits", "cache_misses")


@pytest.mark.parametrize("option", ["_nrt", "forceinline", "no_cfunc_wrapper", "no_cpython_wrapper"])
def test_numba_knows_the_options_of_kernels(option: str) -> None:
    """A Numba without one of them names it and compiles no kernel."""
    dispatcher: Any = numba.njit(**{option: True})(lambda x: x)
    dispatcher.compile((numba.int64,))


PROGRAM = """
import sys
import numba
import numpy as np
import spinbench
from spinbench.models import generators

spinbench.run(generators.grid(3, 3, seed=0), method="exact", backend="numba")
assert "scipy.linalg" not in sys.modules
product = numba.njit(lambda a: a @ a)(np.full((2, 2), 0.5))
assert "scipy.linalg" in sys.modules and (product == 0.5).all()
"""


def test_blas_is_looked_for_where_it_is_needed() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)

"""What kernels use of Numba and llvmlite beside their exported interfaces, and who loads SciPy's linear algebra.

A scan of the sources finds private imports and attributes that are not listed here; what is listed is there.
"""

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
from numba.core import caching, cgutils, config, event, registry
from numba.np.arrayobj import make_array

import spinbench
from spinbench import backends, methods
from spinbench.backends import numba as backend
from spinbench.backends.numba.kernel_cache import KernelLocator

PUBLIC = {"numba", "numba.extending", "llvmlite"}
# Names outside of `PUBLIC`, and the files that import them.
PRIVATE = {
    # arrays and tuples inside intrinsics
    "numba.core.cgutils": {"simd/arrays.py", "simd/checks.py", "simd/memory.py", "simd/vector_sums.py"},
    "numba.np.arrayobj.make_array": {"simd/arrays.py", "simd/checks.py", "simd/memory.py"},
    "numba.np.arrayobj.populate_array": {"simd/arrays.py"},
    # intrinsics that Python calls while it generates code
    "numba.core.extending._Intrinsic": {"simd/vectors.py"},
    # what is replaced while a module is imported, for time alone
    "numba.np.linalg": {"kernel_cache.py"},
    "numba.np.arraymath": {"kernel_cache.py"},
    # settings, errors, events and the lock around compiling: named in Numba's documentation, but not exported
    "numba.core.compiler_lock.global_compiler_lock": {"kernel_cache.py"},
    "numba.core.config": {"kernel_cache.py"},
    "numba.core.errors.TypingError": {"simd/memory.py"},
    "numba.core.event": {"kernel_cache.py"},
}


# Attributes with an underscore of objects that Numba made or whose class is Numba's, and the files that read them.
PRIVATE_ATTRIBUTES = {
    "_defn": {"simd/formulas.py", "simd/vectors.py"},
    "_register": {"simd/vectors.py"},
    "_getvalue": {"simd/arrays.py", "simd/checks.py"},
}
# A copy, since the process's own context keeps its runtime as it is when it is first asked for.
TARGET = registry.cpu_target.target_context.subtarget()
# What kernels' sources call Numba's objects.
OBJECTS = {
    "context": TARGET,
    "call_conv": TARGET.call_conv,
    "cgutils": cgutils,
    "config": config,
    "dispatcher": numba.njit(lambda x: x),
    "event": event,
    "nrt": TARGET.nrt,
    "typing_context": registry.cpu_target.typing_context,
}


def parse(module: Any) -> dict[str, ast.Module]:
    """The syntax trees of a package's files."""
    folder = Path(module.__file__).parent
    return {file.relative_to(folder).as_posix(): ast.parse(file.read_text()) for file in folder.rglob("*.py")}


KERNELS = parse(backend)


def private_imports(tree: ast.Module) -> set[str]:
    """What a file imports at run time of modules that are not `PUBLIC`."""
    guards = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for_types = {id(node) for guard in guards for node in ast.walk(guard)}
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module not in PUBLIC:
            names |= {f"{node.module}.{name.name}" for name in node.names if id(node) not in for_types}
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names if name.name not in PUBLIC}
    return {name for name in names if name.split(".")[0] in {"numba", "llvmlite"}}


def own_attributes(tree: ast.Module) -> set[str]:
    """What a file's classes and their objects have."""
    nodes = list(ast.walk(tree))
    functions = [part for node in nodes if isinstance(node, ast.ClassDef) for part in node.body]
    own = {part.name for part in functions if isinstance(part, ast.FunctionDef)}
    return own | {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}


def test_private_names_of_numba_are_listed() -> None:
    found: dict[str, set[str]] = {}
    for file, tree in KERNELS.items():
        for name in private_imports(tree):
            found.setdefault(name, set()).add(file)
    assert found == PRIVATE


@pytest.mark.parametrize("package", [spinbench, backends, methods], ids=lambda package: str(package.__name__))
def test_kernels_alone_import_private_names_of_numba(package: Any) -> None:
    users = {file for file, tree in parse(package).items() if private_imports(tree)}
    assert not [file for file in users if not file.startswith(("numba/", "backends/numba/"))]


def test_no_private_module_is_read_as_an_attribute() -> None:
    nodes = [node for tree in KERNELS.values() for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    private = ("nb.core", "nb.np.", "nb.cpython", "numba.core", "numba.np.", "numba.cpython")
    assert not [ast.unparse(node) for node in nodes if ast.unparse(node).startswith(private)]


def test_private_attributes_are_listed() -> None:
    own = {"_replace", "_fields", "_backend"}.union(*map(own_attributes, KERNELS.values()))
    found: dict[str, set[str]] = {}
    for file, tree in KERNELS.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and node.attr not in own:
                found.setdefault(node.attr, set()).add(file)
    assert {name: files for name, files in found.items() if not name.startswith("__")} == PRIVATE_ATTRIBUTES


def test_numbas_objects_have_the_private_attributes() -> None:
    an_intrinsic: Any = numba.extending.intrinsic(lambda typing_context, x: None)
    assert hasattr(an_intrinsic, "_defn")
    assert hasattr(an_intrinsic, "_register")
    assert hasattr(make_array(numba.float64[::1]), "_getvalue")


def test_numbas_objects_have_what_kernels_ask_of_them() -> None:
    asked = {
        (file, ast.unparse(node.value).rpartition(".")[2], node.attr)
        for file, tree in KERNELS.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
    }
    missing = [member for member in asked if member[1] in OBJECTS and not hasattr(OBJECTS[member[1]], member[2])]
    assert not missing


def test_the_code_generator_tells_the_processors_features() -> None:
    """`simd.memory.look_up` chooses between an instruction and loads by them."""
    code_generator = TARGET.codegen()
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

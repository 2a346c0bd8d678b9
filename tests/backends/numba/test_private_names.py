"""What kernels use of Numba and llvmlite beside their exported interfaces: where to look after an update of Numba.

What is imported for type checkers alone does not count: it may go without a user noticing.
"""

from __future__ import annotations

import ast
from pathlib import Path

from spinbench.backends import numba as backend

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

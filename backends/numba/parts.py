"""How functions are compiled that compiled code alone calls: parts of their callers, without machine code of their own.

Numba optimises every function that another one calls for itself, makes machine code of it, and more of it for Python to
call; then its callers get a copy, which is optimised again. All but the simplified copy is waste where nobody else
calls the function, and was a third to a half of what a kernel costs to compile.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numba
from numba.core import codegen, compiler, compiler_machinery, typed_passes

_LIBRARY: Any = codegen.JITCodeLibrary
_COMPILER: Any = compiler.CompilerBase
_LOWERING: Any = typed_passes.NativeLowering
_FUNCTIONS: Any = numba._dynfunc  # type: ignore[attr-defined]
_PASSES: Any = compiler.DefaultPassBuilder


class _Copied(_LIBRARY):  # type: ignore[misc]  # Numba has no types
    """The code of a function that goes into its callers, where it is optimised, once it is simplified.

    Numba's passes over single functions stay: LLVM decides by their size whether to inline them.
    """

    def _optimize_final_module(self) -> None:
        """Left to the callers."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
def _refuse(*arguments: Any) -> None:
    """What Python calls; it gets a SystemError, as an exception does not leave this."""


_REFUSAL = ctypes.cast(_refuse, ctypes.c_void_p).value


@compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(_LOWERING):  # type: ignore[misc]
    """Numba's, into such code."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        library = state.library = _Copied(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        made, library = state.cr, state.library
        name = made.fndesc.qualname.split(".")[-1]
        entry = _FUNCTIONS.make_function(made.fndesc.lookup_module(), name, "", _REFUSAL, made.env, (library,))
        state.targetctx.insert_user_function(entry, made.fndesc, [library])
        state.reload_init.extend(getattr(library, "_reload_init", ()))  # older libraries have none
        state.cr = made._replace(cfunc=entry)
        return True


class _Part(_COMPILER):  # type: ignore[misc]
    """Numba's passes, with that one."""

    def define_pipelines(self) -> list[Any]:
        passes = _PASSES.define_nopython_pipeline(self.state)
        passes.passes = [(_Lowering if step is _LOWERING else step, words) for step, words in passes.passes]
        passes.finalize()
        return [passes]


PART: dict[str, Any] = {"pipeline_class": _Part, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of such a function."""

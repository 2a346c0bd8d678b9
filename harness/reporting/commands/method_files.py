"""A method that lies in a file of Python, and is registered nowhere."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from spinbench.api import Method
from spinbench.errors import BrokenPluginError, SpinbenchError
from spinbench.inference import registry

SUFFIX = ".py"


def made(path: Path, settings: dict[str, Any]) -> Method:
    """The one method that a file defines, with settings; the file is run as a module.

    Raises:
        SpinbenchError: there is no such file, it defines no method or several, or a setting is wrong.
        BrokenPluginError: what the file does raises.
    """
    if not path.is_file():
        raise SpinbenchError(f"method {str(path)!r} was given; there is no such file")
    name = f"_method_of_{path.stem}"  # which hides no module, whatever the file is called
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # the suffix is Python's
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their own module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise BrokenPluginError(f"{path}: {type(error).__name__}: {error}") from error
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Method) and value.__module__ == name
    ]
    if len(found) != 1:
        names = ", ".join(cls.__name__ for cls in found) or "none"
        raise SpinbenchError(f"{path} defines {names}; one method is needed, a class derived from spinbench.api.Method")
    return registry.make_method(found[0], settings)

"""Run as a program, in a process that has not imported spinbench: its imports as JSON, {importer: [imported, …]}.

Those for type checking alone are left out. The package has to be found on the path, with its four folders in one place.
"""

from __future__ import annotations

import json

import grimp

graph = grimp.build_graph("spinbench", cache_dir=None, exclude_type_checking_imports=True)
print(json.dumps({name: sorted(graph.find_modules_directly_imported_by(name)) for name in sorted(graph.modules)}))

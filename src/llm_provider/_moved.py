"""Old names of modules, which pickles of earlier versions have. Alone, as only the import of one loads it.

A pickle names the module of each class and function in it. The last finder of `sys.meta_path` is asked for
names that no other finder has, so a module under its present name is found without this table.
"""

import sys
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED: dict[str, str] = {}
"""Old name → present name, both in full, such as "llm_provider._errors"."""


def find_spec(name: str) -> ModuleSpec | None:
    """The module of an old name, or the folder that had one; None for every other name."""
    if name in MOVED:
        return ModuleSpec(name, _Alias())
    # It is an empty package. With the path of a present one, its modules would be loaded a second time.
    is_folder = any(old.startswith(f"{name}.") for old in MOVED)
    return ModuleSpec(name, None, is_package=True) if is_folder else None


class _Alias(Loader):
    """Loads the present module, and gives it the old name too."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Take a new module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(MOVED[module.__name__])

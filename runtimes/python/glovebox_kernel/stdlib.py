"""Imports of the standard library that never take a file of the code's for it, and never hide such a file from the code."""

import os
import sys

FOLDER = os.path.dirname(os.__file__)
NAMES = getattr(sys, "stdlib_module_names", None) or frozenset(name.split(".")[0] for name in os.listdir(FOLDER))

_kept = {}
_ours = []
_hidden = {}


def is_of_library(module):
    path = getattr(module, "__file__", None)
    return path is None or (path.startswith(FOLDER) and "-packages" not in path)


def stdlib(name):
    """The module of that name, loaded when first needed."""
    module = _kept.get(name)
    if module is None:
        module = _kept[name] = _load(name)
    return module


def loaded(name):
    """The same, where it was needed before; else None."""
    return _kept.get(name)


class AsLibrary:
    """Within it imports find the standard library and nothing else: not what lies on the path, nor what code has imported from there."""

    def __enter__(self):
        modules = sys.modules
        self.shadows = {key: value for key, value in list(modules.items()) if key.split(".")[0] in NAMES and not is_of_library(value)}
        for key in self.shadows:
            del modules[key]
        modules.update(_hidden)
        self.before = set(modules)
        self.path = sys.path
        sys.path = [entry for entry in self.path if isinstance(entry, str) and is_library_folder(entry)]

    def __exit__(self, *_error):
        sys.path = self.path
        _ours.extend(key for key in sys.modules if key not in self.before)
        for key in _hidden:
            sys.modules.pop(key, None)
        sys.modules.update(self.shadows)
        hide_shadowed()


def is_library_folder(entry):
    return (entry.startswith(FOLDER) or entry.endswith(".zip")) and "-packages" not in entry


def _load(name):
    with AsLibrary():
        __import__(name)
        return sys.modules[name]


def remember(before):
    """What the kernel itself has imported since; `before` are the names of the modules that were there."""
    _ours.extend(key for key in sys.modules if key not in before and not key.startswith("glovebox_kernel"))


def hide_shadowed():
    """Takes what only the kernel imported out of the code's sight, where a file of the code's stands before it on the path."""
    entries = []
    for entry in sys.path:
        if not isinstance(entry, str) or entry.startswith(FOLDER):
            break
        entries.append(entry or ".")
    names = set()
    for entry in entries:
        try:
            names.update(item[:-3] if item.endswith(".py") else item for item in os.listdir(entry))
        except OSError:
            pass
    for key in _ours:
        module = sys.modules.get(key)
        if key.split(".")[0] not in names or module is None:
            continue
        if key not in _hidden and is_of_library(module):
            _hidden[key] = module
        if _hidden.get(key) is module:
            del sys.modules[key]
    del _ours[:]

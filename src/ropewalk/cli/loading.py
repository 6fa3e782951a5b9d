"""Finds the App or Worker that `module:name` names, with errors that say what to fix.

Modules are imported with the current directory on the path.
"""

from __future__ import annotations

import importlib
import sys
import sysconfig
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

import click

from ropewalk.app import App
from ropewalk.errors import RopewalkError
from ropewalk.fleet.worker_processes import WorkerProcesses
from ropewalk.worker.worker import Worker

_LIBRARIES: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def load_app(path: str) -> App:
    """Return the app that `module:name` names."""
    found, module = _loaded(path, _apps_of)
    if not isinstance(found, App):
        raise click.ClickException(f"{path} is a {type(found).__name__}, not a ropewalk.App ({_apps_of(module)})")
    return found


def load_app_or_worker(path: str) -> App | Worker | WorkerProcesses:
    """Return the app or the worker that `module:name` names, which `ropewalk worker` can run."""
    found, module = _loaded(path, _all_of)
    if not isinstance(found, App | Worker | WorkerProcesses):
        kind = type(found).__name__
        raise click.ClickException(f"{path} is a {kind}, not a ropewalk.App or a worker of one ({_all_of(module)})")
    return found


def _loaded(path: str, instead: Callable[[ModuleType], str]) -> tuple[object, ModuleType]:
    """Return the named object and its module; `instead` describes what else could have been named there."""
    module_name, colon, attribute = path.partition(":")
    if not colon or not module_name or not attribute:
        raise click.ClickException(
            f"{path!r} is not module:attribute, like shop.jobs:app for `app = App(...)` in shop/jobs.py"
        )
    module = _imported(module_name)
    found: object = module
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise click.ClickException(f"module {module_name!r} has no attribute {attribute!r} ({instead(module)})")
        found = getattr(found, name)
    return found, module


def _imported(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise click.ClickException(f"there is no module {error.name!r} in {here} or on the Python path") from None
        raise click.ClickException(f"importing {name!r} needs a module that is not installed: {error}") from None
    except RopewalkError as error:
        raise type(error)(f"importing {name!r}: {error}{_place(error)}") from error
    except Exception as error:
        # An error in the user's own code: the message shows where it was raised.
        told = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise click.ClickException(f"importing {name!r} failed: {told}{_place(error)}") from error


def _place(error: BaseException) -> str:
    """Return the last line of the user's own code in the traceback, or of a library if there is no such line."""
    ours = (str(Path(__file__).parents[1]), importlib.__file__, "<")
    lines = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith(ours)]
    own = [each for each in lines if not each.filename.startswith(_LIBRARIES)] or lines
    return f" ({own[-1].filename}:{own[-1].lineno})" if own else ""


def _apps_of(module: ModuleType) -> str:
    apps = _names(module, App)
    return f"its apps: {apps}" if apps else "it has no App"


def _all_of(module: ModuleType) -> str:
    workers = _names(module, Worker, WorkerProcesses)
    return f"{_apps_of(module)}; its workers: {workers}" if workers else _apps_of(module)


def _names(module: ModuleType, *kinds: type) -> str:
    return ", ".join(sorted(name for name, value in vars(module).items() if isinstance(value, kinds)))

"""Where a job type is defined, so that another process can find it: its module and its name there.

A type in a script that was started as `python script.py` is found by running that file once more under the name
`__mp_main__`, as multiprocessing does. What such a script does must stand under `if __name__ == "__main__":`.

The app's `decide` is found in a handler's process by its name, too, because functions cannot be sent. It is imported
only after a handler has failed, because handlers may have no other use for its module.
"""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from msgspec import Struct

from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.options import Classifier
from ropewalk.definitions.results.classify import call_classifier, error_info
from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.outcome import Aborted, Outcome
from ropewalk.errors import DefinitionError

MAIN: Final = "__main__"
"""The name of the module that a process was started with."""

MAIN_AGAIN: Final = "__mp_main__"
"""The name of a script that is run once more, in a process that did not start with it."""


class Source(Struct, frozen=True, tag=True, kw_only=True):
    """Where something that a user has named is defined."""

    name: str
    """The name of the job type, or what an error message calls it."""
    module: str
    qualname: str
    """Its name in the module, with dots for what is inside of something else."""
    script: str | None = None
    """The path of the script, if `module` is MAIN_AGAIN."""


def source_of(job_type: JobType[..., Any, Any]) -> Source:
    """Where a job type is defined. Raises DefinitionError if no other process can find it there."""
    return source_at(job_type.name, job_type.module, job_type.qualname)


def source_at(name: str, module: str, qualname: str) -> Source:
    """The source with this name, module and qualname. Raises DefinitionError if no other process can import it."""
    if module not in (MAIN, MAIN_AGAIN):
        return Source(name=name, module=module, qualname=qualname)
    named = _main_module()
    if named is not None:
        return Source(name=name, module=named, qualname=qualname)
    script = Path(getattr(sys.modules[MAIN], "__file__", ""))
    if not script.is_file():
        raise DefinitionError(
            f"{name} is defined in an interactive session, where no other process can find it; move it to a module"
        )
    return Source(name=name, module=MAIN_AGAIN, qualname=qualname, script=str(script.absolute()))


def load_job_type(source: Source) -> JobType[..., Any, Any]:
    """Import the job type in the handler's process. Raises DefinitionError."""
    found = object_at(source)
    if not isinstance(found, JobType) or found.name != source.name:
        raise DefinitionError(
            f"{source.module}.{source.qualname} is {found!r}, not the job type {source.name!r}: "
            "a type that runs in a process must stay under the name of its function"
        )
    return cast("JobType[..., Any, Any]", found)


def object_at(source: Source) -> object:
    """Import what is defined there; None if there is nothing. Raises DefinitionError if the import fails."""
    found: object = _imported(source)
    for step in source.qualname.split("."):
        found = getattr(found, step, None)
    return found


def handler_not_found(error: DefinitionError) -> Outcome:
    """The outcome of an attempt whose handler its process cannot find: it will not be found next time either."""
    return Aborted(error_info(error, Category.PERMANENT, code="handler_not_found"))


def _main_module() -> str | None:
    """The real name of a module that was started as `python -m name`; None for a script."""
    spec = sys.modules[MAIN].__spec__
    return None if spec is None or spec.name == MAIN_AGAIN else spec.name


def _imported(source: Source) -> ModuleType:
    try:
        return import_module(source.module) if source.script is None else _script(source.script)
    except (Exception, SystemExit) as error:
        raise DefinitionError(
            f"the handler's process cannot import {source.script or source.module}, where {source.name} is defined: "
            f"{type(error).__name__}: {error}{_hint(source, error)}"
        ) from error


def _hint(source: Source, error: BaseException) -> str:
    if source.script is not None:
        return ' (everything a script does must stand under `if __name__ == "__main__":`)'
    if isinstance(error, ModuleNotFoundError) and error.name == source.module:
        return " (it must be importable by that name: on sys.path, in a file)"
    return ""


def _script(path: str) -> ModuleType:
    # Importing multiprocessing puts this process's own main module there, which is not the script.
    again = sys.modules.get(MAIN_AGAIN)
    if again is not None and again.__name__ == MAIN_AGAIN:
        return again
    loader = SourceFileLoader(MAIN_AGAIN, path)
    spec = spec_from_loader(MAIN_AGAIN, loader)
    assert spec is not None, "a loader that was given always makes a spec"
    module = module_from_spec(spec)
    # A script has no spec. With one, processes that a handler starts with multiprocessing would import it by its name.
    module.__spec__ = None
    before = sys.modules[MAIN]
    sys.modules[MAIN] = sys.modules[MAIN_AGAIN] = module
    try:
        # On a running loop, so that a script without the guard fails at its asyncio.run() instead of starting again.
        asyncio.run(_execute(loader, module))
    except BaseException:
        sys.modules[MAIN] = before
        del sys.modules[MAIN_AGAIN]
        raise
    return module


async def _execute(loader: SourceFileLoader, module: ModuleType) -> None:
    loader.exec_module(module)


APP_DECIDE: Final = "decide of the app"
"""What messages call the app's classifier."""


def classifier_source(decide: Classifier) -> Source:
    """Where a classifier is defined. Raises DefinitionError if another process cannot find it there."""
    module, qualname = getattr(decide, "__module__", None), getattr(decide, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(qualname, str) or _loaded_object(module, qualname) != decide:
        raise DefinitionError(
            f"{APP_DECIDE} is {decide!r}, which no other process can find: "
            "handlers with executor='process' go without it; give a function that stands under its own name in a module"
        )
    return source_at(APP_DECIDE, module, qualname)


def classifier_at(source: Source) -> Classifier:
    """A classifier that imports the real one on each call, so that a failed import is reported as its error."""

    def decide(error: BaseException, attempt: int) -> object:
        found = object_at(source)
        if not callable(found):
            raise DefinitionError(f"{APP_DECIDE} was to be {source.module}.{source.qualname}, which is {found!r} here")
        return call_classifier(cast("Classifier", found), error, attempt)

    return cast("Classifier", decide)


def _loaded_object(module: str, qualname: str) -> object:
    found: object = sys.modules.get(module)
    for step in qualname.split("."):
        found = getattr(found, step, None)
    return found

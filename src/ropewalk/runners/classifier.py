"""An app's `decide` in a handler's process: found there by its name, like the job type. Functions do not go over pipes.

It is looked for when a handler failed and not before: its module may be one that handlers have no use for.
"""

from __future__ import annotations

import sys
from typing import Final, cast

from ropewalk.definitions.options import Classifier
from ropewalk.errors import DefinitionError
from ropewalk.runners.source import Source, found_at, located

NAME: Final = "decide of the app"


def classifier_source(decide: Classifier) -> Source:
    """Raises DefinitionError for a function that another process cannot find."""
    module, qualname = getattr(decide, "__module__", None), getattr(decide, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(qualname, str) or _standing(module, qualname) != decide:
        raise DefinitionError(
            f"{NAME} is {decide!r}, which no other process can find: handlers with executor='process' go without it; "
            "give a function that stands under its own name in a module"
        )
    return located(NAME, module, qualname)


def classifier_at(source: Source) -> Classifier:
    """Loads it each time it is asked: what goes wrong with that is then told like any trouble of a classifier."""

    def decide(error: BaseException) -> object:
        found = found_at(source)
        if not callable(found):
            raise DefinitionError(f"{NAME} was to be {source.module}.{source.qualname}, which is {found!r} here")
        return cast("Classifier", found)(error)

    return cast("Classifier", decide)


def _standing(module: str, qualname: str) -> object:
    found: object = sys.modules.get(module)
    for step in qualname.split("."):
        found = getattr(found, step, None)
    return found

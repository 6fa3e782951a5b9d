"""Where another process finds an object of this one: under a name at the top level of a module that it can import."""

from __future__ import annotations

import sys
from types import ModuleType

from ropewalk.runners.source import MAIN, MAIN_AGAIN, Source, source_at

_SCRIPTS = (MAIN, MAIN_AGAIN)


def whereabouts(thing: object) -> Source | None:
    """None where no module has it at its top level. Raises DefinitionError where only an interactive session has it.

    A module that can be imported comes before a script, which would have to be run again.
    """
    found = [
        (module_name, attribute)
        for module_name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        for attribute, value in list(vars(module).items())
        if value is thing and attribute.isidentifier()
    ]
    if not found:
        return None
    # The module that was imported last is most likely the one that defines it: others import it and came before.
    module_name, attribute = max(enumerate(found), key=lambda each: (each[1][0] not in _SCRIPTS, each[0]))[1]
    return source_at(attribute, module_name, attribute)

"""Job types by name: what an app knows, a worker serves, and `enqueue("name", …)` finds."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from types import ModuleType
from typing import Any, TypeAlias

from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.domain import checks
from ropewalk.errors import DefinitionError, UnknownJobType

AnyJobType: TypeAlias = JobType[..., Any, Any]
Item: TypeAlias = "AnyJobType | Registry | ModuleType"


class Registry:
    """Takes job types, other registries, and modules (every job type in their namespace)."""

    def __init__(self, *items: Item) -> None:
        self._types: dict[str, AnyJobType] = {}
        self.add(*items)

    def add(self, *items: Item) -> None:
        """Resolves annotations, so that a wrong declaration surfaces here. The same job type twice is fine."""
        for item in items:
            for job_type in _types_in(item):
                self._add(job_type)

    def get(self, name: str) -> AnyJobType:
        if not isinstance(name, str):
            raise checks.wrong("name", name, "the name of a job type")
        found = self._types.get(name)
        if found is None:
            raise UnknownJobType(self.unknown(name))
        return found

    def names(self) -> list[str]:
        return list(self._types)

    def __iter__(self) -> Iterator[AnyJobType]:
        return iter(self._types.values())

    def __len__(self) -> int:
        return len(self._types)

    def __contains__(self, item: object) -> bool:
        """By name, or by the job type itself."""
        if isinstance(item, JobType):
            return any(item is each for each in self._types.values())
        return item in self._types

    def __repr__(self) -> str:
        return f"Registry({', '.join(self._types)})"

    def _add(self, job_type: AnyJobType) -> None:
        held = self._types.get(job_type.name)
        if held is not None and held is not job_type:
            raise DefinitionError(
                f"two job types are named {job_type.name!r}: {held.module}.{held.qualname} and "
                f"{job_type.module}.{job_type.qualname}; give one of them another with @job(name=...)"
            )
        job_type.resolve()
        self._types[job_type.name] = job_type

    def unknown(self, name: str) -> str:
        """What to say of a name that nobody registered."""
        known = sorted(self._types)
        near = difflib.get_close_matches(name, known, n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
        listed = ", ".join(known) or "none"
        return f"no job type named {name!r} is registered here{hint} Registered: {listed}"


def _types_in(item: object) -> list[AnyJobType]:
    match item:
        case JobType():
            return [item]
        case Registry():
            return list(item)
        case ModuleType():
            return [each for each in vars(item).values() if isinstance(each, JobType)]
        case _:
            raise DefinitionError(f"{item!r} is no job type, Registry or module; is the function decorated with @job?")

"""A named handler with its options: what `@job` makes. Calling it builds a job; only a worker calls the handler."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Generic, ParamSpec, TypeVar, cast

from ropewalk.definitions import identity
from ropewalk.definitions.arguments import Arguments
from ropewalk.definitions.compensating import check_compensation
from ropewalk.definitions.contract import Contract, contract_of
from ropewalk.definitions.job import Job
from ropewalk.definitions.options import TypeOptions
from ropewalk.definitions.schema import json_schema
from ropewalk.definitions.signature import Handler, Style, check_function, place, signature_of, style_of
from ropewalk.errors import DefinitionError

P = ParamSpec("P")
S_co = TypeVar("S_co", covariant=True)
G_co = TypeVar("G_co", covariant=True)


class JobType(Generic[P, S_co, G_co]):
    """P are the arguments, S is the job's own result, G what its group resolves to."""

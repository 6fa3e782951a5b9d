"""A named handler with its options: what `@job` makes. Calling it builds a job; only a worker calls the handler.

What a job type takes and gives, as JSON Schema.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Generic, ParamSpec, TypeVar, cast

import msgspec

from ropewalk.definitions import job
from ropewalk.definitions.compensation import takeover_problem
from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.batch_items import batch_signature_of
from ropewalk.definitions.job_types.contract import Contract, batch_contract_of, contract_of
from ropewalk.definitions.job_types.signature import (
    Handler,
    Style,
    check_function,
    qualified_name,
    signature_of,
    style_of,
)
from ropewalk.definitions.options import TypeOptions
from ropewalk.domain import checks
from ropewalk.errors import DefinitionError


def type_name(value: object, field: str) -> str:
    """A job type, or the name of one: its name. Checked like every other value (domain/checks.py)."""
    if isinstance(value, JobType):
        return cast("JobType[..., Any, Any]", value).name
    if isinstance(value, str):
        return checks.text(value, field)
    raise checks.wrong(field, value, "a job type, or the name of one")


TEMPLATE = "#/$defs/{name}"


def json_schema(annotation: object) -> dict[str, Any]:
    """A schema that stands alone: what it refers to is under `$defs`."""
    (schema,), parts = msgspec.json.schema_components([annotation], schema_hook=_custom, ref_template=TEMPLATE)
    return {**schema, "$defs": parts} if parts else schema


def _custom(cls: type) -> dict[str, Any]:
    """Registered types decide themselves what they look like; a pydantic model says it."""
    describe = getattr(cls, "model_json_schema", None)
    if describe is None:
        return {"description": "any value"} if cls is object else {"title": cls.__qualname__}
    described: dict[str, Any] = describe()
    return described


P = ParamSpec("P")
S_co = TypeVar("S_co", covariant=True)
G_co = TypeVar("G_co", covariant=True)


class JobType(Generic[P, S_co, G_co]):
    """P are the arguments, S is the job's own result, G what its group resolves to.

    The name is the function's own (without its module) unless one is given; it is stored with every job.
    """

    __name__: str
    __wrapped__: Handler

    def __init__(self, function: object, options: TypeOptions, name: str | None = None) -> None:
        self.handler: Handler = check_function(function)
        self.style: Style = style_of(self.handler, options.executor)
        self.options = options
        self.module: str = self.handler.__module__
        self.qualname: str = self.handler.__qualname__
        self.name: str = self.handler.__name__ if name is None else name
        self._contract: Contract | None = None
        functools.update_wrapper(self, self.handler, updated=())
        self._check_now()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Job[S_co, G_co]:
        """Build a job: id assigned, arguments checked and encoded. Raises InvalidInput naming the argument."""
        return self._build(self.resolve().arguments.bind(args, kwargs))

    def from_arguments(self, arguments: object) -> Job[S_co, G_co]:
        """Build a job for callers that have no typed call to make: from arguments by name, of a batch type the item."""
        return self._build(self.resolve().arguments.complete(arguments))

    def arguments_from_json(self, data: bytes | str) -> Any:
        """What `from_arguments` takes, from JSON: each value is read by its annotation, as a stored payload is.

        A Decimal, a date or a UUID is text there, a set is an array. Raises InvalidInput naming the argument.

        >>> bill.arguments_from_json('{"amount": "1.50"}')    # {"amount": Decimal("1.50")}
        """
        return self.resolve().arguments.from_json(data.encode() if isinstance(data, str) else data)

    @property
    def takes_context(self) -> bool:
        return self.resolve().takes_context

    def resolve(self) -> Contract:
        """What the annotations say, on first use. Raises DefinitionError."""
        if self._contract is None:
            make = contract_of if self.options.batch is None else batch_contract_of
            contract = make(self.handler, self.name, self.options.codec)
            self._check_compensation(contract)
            self._contract = contract
        return self._contract

    def encode_input(self, arguments: Mapping[str, object]) -> bytes:
        """A JSON object of the arguments, without those that equal their default."""
        takes = self.resolve().arguments
        return takes.encode(takes.complete(arguments))

    def decode_input(self, data: bytes) -> dict[str, object]:
        """The arguments by name. Raises InvalidInput where they do not (or no longer) fit the signature."""
        return self.resolve().arguments.decode(data)

    def encode_result(self, value: object) -> bytes | None:
        return self.resolve().returns.encode(value)

    def decode_result(self, data: bytes | None) -> S_co:
        return cast("S_co", self.resolve().returns.decode(data))

    def hidden_names(self, secret_keys: Iterable[str]) -> frozenset[str]:
        """The names whose values are shown nowhere: those that this type marks as Secret, and `secret_keys`."""
        try:
            return self.resolve().secrets.union(secret_keys)
        except DefinitionError:  # its annotations cannot be resolved; then no job of it has arguments
            return frozenset(secret_keys)

    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, as one object; of a batch type, of its item."""
        return json_schema(self.resolve().arguments.annotation)

    def result_schema(self) -> dict[str, Any]:
        return json_schema(self.resolve().returns.annotation)

    def __repr__(self) -> str:
        return f"<job type {self.name} ({self.module}.{self.qualname})>"

    def _build(self, arguments: dict[str, object]) -> Job[S_co, G_co]:
        data = self.resolve().arguments.encode(arguments)
        return Job(job.new_id(), self, data, MappingProxyType(arguments), built_in=job.running_attempt())

    def _check_now(self) -> None:
        """Surface at decoration what can be known then; names that are not defined yet wait for the first use."""
        where, wanted = qualified_name(self.handler), self.options.on_failure
        if not isinstance(wanted, JobType | Job | None):
            raise DefinitionError(f"{where}: on_failure={wanted!r} must be a job type or a job")
        try:
            signature_of(self.handler) if self.options.batch is None else batch_signature_of(self.handler)
        except (NameError, AttributeError):
            return

    def _check_compensation(self, contract: Contract) -> None:
        wanted = self.options.on_failure
        if not isinstance(wanted, JobType):
            return
        if (reason := takeover_problem(contract.arguments, wanted.resolve().arguments)) is not None:
            raise DefinitionError(f"{qualified_name(self.handler)}: on_failure={wanted.name}: {reason}")

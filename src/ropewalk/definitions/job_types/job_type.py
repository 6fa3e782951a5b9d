"""A job type: a named handler with its options, which `@job` makes, and the JSON Schemas of its input and result.

Calling a job type builds a job; only workers call the handler.
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
    """The name of a job type that is given as itself or by name. Raises InvalidInput for anything else."""
    if isinstance(value, JobType):
        return cast("JobType[..., Any, Any]", value).name
    if isinstance(value, str):
        return checks.text(value, field)
    raise checks.wrong(field, value, "a job type, or the name of one")


TEMPLATE = "#/$defs/{name}"
"""The form of references inside of a JSON Schema."""


def json_schema(annotation: object) -> dict[str, Any]:
    """The JSON Schema of an annotation, with everything that it refers to under `$defs`."""
    (schema,), parts = msgspec.json.schema_components([annotation], schema_hook=_custom, ref_template=TEMPLATE)
    return {**schema, "$defs": parts} if parts else schema


def _custom(cls: type) -> dict[str, Any]:
    """The JSON Schema of a class that msgspec does not know; a pydantic model brings its own."""
    describe = getattr(cls, "model_json_schema", None)
    if describe is None:
        return {"description": "any value"} if cls is object else {"title": cls.__qualname__}
    described: dict[str, Any] = describe()
    return described


P = ParamSpec("P")
S_co = TypeVar("S_co", covariant=True)
G_co = TypeVar("G_co", covariant=True)


class JobType(Generic[P, S_co, G_co]):
    """A named handler with its options. P are the parameters, S is the type of the result, G that of the group's value.

    The name is that of the function, without its module, unless another one is given. It is stored with every job.
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
        """Build a job with a new id, and check and encode its arguments. Raises InvalidInput naming the argument."""
        return self._build(self.resolve().arguments.bind(args, kwargs))

    def from_arguments(self, arguments: object) -> Job[S_co, G_co]:
        """Build a job from arguments by name, or of a batch type from the item. Raises InvalidInput."""
        return self._build(self.resolve().arguments.complete(arguments))

    def arguments_from_json(self, data: bytes | str) -> Any:
        """Read the arguments that `from_arguments` takes from JSON. Each value is read by its annotation.

        In JSON a Decimal, a date or a UUID is text, and a set is an array. Raises InvalidInput naming the argument.

        >>> bill.arguments_from_json('{"amount": "1.50"}')    # {"amount": Decimal("1.50")}
        """
        return self.resolve().arguments.from_json(data.encode() if isinstance(data, str) else data)

    @property
    def takes_context(self) -> bool:
        """Whether the handler takes a Context as its first argument."""
        return self.resolve().takes_context

    def resolve(self) -> Contract:
        """The contract of the handler; its annotations are resolved on first use. Raises DefinitionError."""
        if self._contract is None:
            make = contract_of if self.options.batch is None else batch_contract_of
            contract = make(self.handler, self.name, self.options.codec)
            self._check_compensation(contract)
            self._contract = contract
        return self._contract

    def encode_input(self, arguments: Mapping[str, object]) -> bytes:
        """Encode arguments by name as a JSON object, without those that equal their default. Raises InvalidInput."""
        takes = self.resolve().arguments
        return takes.encode(takes.complete(arguments))

    def decode_input(self, data: bytes) -> dict[str, object]:
        """Decode arguments by name. Raises InvalidInput if they do not fit the signature, or not any more."""
        return self.resolve().arguments.decode(data)

    def encode_result(self, value: object) -> bytes | None:
        """Encode a result by the return annotation. Raises InvalidInput if it does not fit."""
        return self.resolve().returns.encode(value)

    def decode_result(self, data: bytes | None) -> S_co:
        """Decode a stored result. Raises InvalidInput if it does not fit the return annotation, or not any more."""
        return cast("S_co", self.resolve().returns.decode(data))

    def hidden_names(self, secret_keys: Iterable[str]) -> frozenset[str]:
        """The names whose values are hidden everywhere: those that this type marks as Secret, and `secret_keys`."""
        try:
            return self.resolve().secrets.union(secret_keys)
        except DefinitionError:  # no job of a type whose annotations cannot be resolved has arguments
            return frozenset(secret_keys)

    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments as one object, or of the item of a batch type."""
        return json_schema(self.resolve().arguments.annotation)

    def result_schema(self) -> dict[str, Any]:
        """The JSON Schema of the result."""
        return json_schema(self.resolve().returns.annotation)

    def __repr__(self) -> str:
        return f"<job type {self.name} ({self.module}.{self.qualname})>"

    def _build(self, arguments: dict[str, object]) -> Job[S_co, G_co]:
        data = self.resolve().arguments.encode(arguments)
        return Job(job.new_id(), self, data, MappingProxyType(arguments), built_in=job.running_attempt())

    def _check_now(self) -> None:
        """Raise what can be known when the function is decorated. Names that are not defined yet are resolved later."""
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

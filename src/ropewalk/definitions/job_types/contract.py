"""The contract of a handler: its arguments and its result, with annotations that the codec can encode and decode."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ropewalk.definitions.codec import custom
from ropewalk.definitions.codec.codec import JsonCodec, TypedCodec, UserCodec, typed_codec
from ropewalk.definitions.codec.mismatch import ValueMismatch
from ropewalk.definitions.codec.shape import custom_classes, type_info
from ropewalk.definitions.job_types.arguments import Arguments
from ropewalk.definitions.job_types.batch_items import Item, batch_signature_of
from ropewalk.definitions.job_types.signature import REQUIRED, Handler, Parameter, qualified_name, signature_of
from ropewalk.domain.redaction import RESULT
from ropewalk.domain.secret_marks import is_marked_secret, secret_names
from ropewalk.errors import DefinitionError, InvalidInput
from ropewalk.ports.codec import Codec


class Returns:
    """The result of a job type, encoded and decoded by the return annotation. None is stored as no result."""

    def __init__(self, job_type: str, annotation: Any, codec: Codec) -> None:
        self.annotation = annotation
        self._job_type = job_type
        self.secrets = secret_names(annotation).union({RESULT} if is_marked_secret(annotation) else ())
        self._codec = TypedCodec(annotation) if type(codec) is JsonCodec else UserCodec(codec, annotation)
        self._is_none = annotation in (None, type(None))

    def encode(self, value: object) -> bytes | None:
        """Encode a result. Raises InvalidInput that says what does not fit, and where."""
        if value is None and self._is_none:
            return None  # most jobs: nothing to check, nothing to write
        try:
            data = self._codec.encode(value)
        except ValueMismatch as error:
            hint = "; annotate the return type" if self.annotation in (Any, object) else ""
            message = f"{self._job_type}: the result does not fit: {error.hiding(self.secrets, RESULT)}{hint}"
            raise InvalidInput(message, field="result") from error.unless_hidden(self.secrets, RESULT)
        return None if value is None else data

    def decode(self, data: bytes | None) -> object:
        """Decode a stored result. Raises InvalidInput if it does not fit."""
        try:
            return None if data is None else self._codec.decode(data)
        except ValueMismatch as error:
            message = f"{self._job_type}: the stored result does not fit: {error.hiding(self.secrets, RESULT)}"
            raise InvalidInput(message, field="result") from error.unless_hidden(self.secrets, RESULT)


class Contract(Struct, frozen=True, kw_only=True):
    """What a handler takes and returns, by its annotations."""

    takes_context: bool
    arguments: Arguments | Item
    returns: Returns
    wants_contexts: bool = False
    """Whether it is the handler of a batch type and takes a Batch."""

    @property
    def secrets(self) -> frozenset[str]:
        """Names that are annotated as Secret: arguments, fields anywhere in arguments and result, and `return`."""
        return self.arguments.secrets | self.returns.secrets


def contract_of(function: Handler, job_type: str, codec: Codec) -> Contract:
    """The contract of a handler. Raises DefinitionError naming the function, the parameter and what to write."""
    where = qualified_name(function)
    try:
        signature = signature_of(function)
    except (NameError, AttributeError) as error:
        raise _unresolved(where, error) from error
    # A codec of the user's own may know what the default one does not.
    if type(codec) is JsonCodec:
        for each in signature.parameters:
            _check_parameter(f"{where}: parameter {each.name!r}", each)
        _check_annotation(f"{where}: the result", signature.result)
    return Contract(
        takes_context=signature.takes_context,
        arguments=Arguments(job_type, signature.parameters, codec),
        returns=Returns(job_type, signature.result, codec),
    )


def batch_contract_of(function: Handler, job_type: str, codec: Codec) -> Contract:
    """The contract of a batch type's handler. Raises DefinitionError as `contract_of` does."""
    where = qualified_name(function)
    try:
        signature = batch_signature_of(function)
    except (NameError, AttributeError) as error:
        raise _unresolved(where, error) from error
    if type(codec) is JsonCodec:
        _check_annotation(f"{where}: the item", signature.item)
        _check_annotation(f"{where}: the result", signature.result)
    return Contract(
        takes_context=False,
        arguments=Item(job_type, signature.item, codec),
        returns=Returns(job_type, signature.result, codec),
        wants_contexts=signature.wants_contexts,
    )


def _unresolved(where: str, error: Exception) -> DefinitionError:
    return DefinitionError(
        f"{where}: an annotation cannot be resolved: {error}. "
        "Define it in the module, and import it outside `if TYPE_CHECKING`"
    )


def _check_parameter(where: str, parameter: Parameter) -> None:
    _check_annotation(where, parameter.annotation)
    if parameter.default is REQUIRED:
        return
    try:
        typed_codec(parameter.annotation).encode(parameter.default)
    except ValueMismatch as error:
        raise DefinitionError(f"{where}: the default {parameter.default!r} does not fit: {error}") from error


def _check_annotation(where: str, annotation: Any) -> None:
    try:
        info = type_info(annotation)
    except NameError as error:
        raise _unresolved(where, error) from error
    except TypeError as error:
        raise DefinitionError(
            f"{where} cannot be decoded unambiguously as {annotation!r}: {error}. "
            "Declare a single type, or Structs told apart by a tag"
        ) from error
    for cls in custom_classes(info):
        if not custom.is_known(cls):
            raise DefinitionError(
                f"{where} is declared as {cls.__qualname__}, which cannot travel: "
                "make it a dataclass or a msgspec Struct, or tell ropewalk how with register_type"
            )

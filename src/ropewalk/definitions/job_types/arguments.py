"""The arguments of one job type, which it binds to their names, checks, encodes and decodes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any, Final, cast

import msgspec
from msgspec import Struct, structs
from msgspec import inspect as mi

from ropewalk.definitions.codec.codec import JsonCodec, TypedCodec, UserCodec
from ropewalk.definitions.codec.mismatch import ROOT, ValueMismatch
from ropewalk.definitions.codec.shape import shape_of
from ropewalk.definitions.job_types.signature import REQUIRED, Parameter
from ropewalk.domain.redaction import is_secret
from ropewalk.domain.secret_marks import is_marked_secret, secret_names
from ropewalk.domain.shown_values import shown
from ropewalk.errors import InvalidInput
from ropewalk.ports.codec import Codec

_ABSENT: Final = re.compile(r"object (missing required|contains unknown) field `(.*)`")
_INSIDE: Final = re.compile(r"\$\.(\w+)(.*)")
fields_of_json: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
"""Decodes the fields of a JSON object without decoding their values."""

_SCALARS: Final = (type(None), bool, int, float, str)


class Arguments:
    """The arguments of one job type. They are encoded as one Struct, so that one call decodes all of them."""

    def __init__(self, job_type: str, parameters: Sequence[Parameter], codec: Codec) -> None:
        self.job_type = job_type
        self.names = tuple(each.name for each in parameters)
        self.required = frozenset(each.name for each in parameters if each.default is REQUIRED)
        marked = frozenset(each.name for each in parameters if is_marked_secret(each.annotation))
        self.secrets = marked.union(*(secret_names(each.annotation) for each in parameters))
        """Names of arguments, and of fields anywhere in them, that are annotated as Secret."""
        self.struct = self.annotation = _struct(job_type, parameters)
        self._parameters = {each.name: each for each in parameters}
        self._name_set = frozenset(self.names)
        self._positional = tuple(each.name for each in parameters if not each.keyword_only)
        self._defaults = {each.name: _copied(each.default) for each in parameters if each.default is not REQUIRED}
        self._plain_defaults = {name: each for name, each in self._defaults.items() if isinstance(each, _SCALARS)}
        self.plain_json = type(codec) is JsonCodec
        """Whether each argument can be read from the encoded arguments without the others."""
        self._codec = _struct_codec(self.struct) if self.plain_json else UserCodec(codec, self.struct)

    def bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        """The arguments of a call by name, bound as Python does it, with defaults, in the order of the signature.

        Raises InvalidInput.
        """
        if len(args) > len(self._positional):
            raise InvalidInput(
                f"{self.job_type} takes {len(self._positional)} positional arguments, not {len(args)} ({self._takes()})"
            )
        given = dict(zip(self._positional, args, strict=False))
        for name in kwargs:
            if name in given:
                raise InvalidInput(f"{self.job_type}: argument {name!r} is given twice", field=name)
        return self._completed({**given, **kwargs} if kwargs else given)

    def complete(self, given: object) -> dict[str, object]:
        """The arguments that are given by name, with the defaults of the others, in the order of the signature.

        Raises InvalidInput.
        """
        if not isinstance(given, Mapping):
            secret = any(is_secret(name, self.secrets) for name in (*self.names, *self.secrets))
            description = f"a value of type {type(given).__name__}" if secret else shown(given)
            raise InvalidInput(f"{self.job_type}: {description} is no mapping of arguments by name ({self._takes()})")
        return self._completed(cast("Mapping[str, object]", given))

    def _completed(self, given: Mapping[str, object]) -> dict[str, object]:
        if not self._name_set.issuperset(given):
            raise self._unknown(next(name for name in given if name not in self._name_set))
        if len(given) == len(self.names):
            return {name: given[name] for name in self.names}
        for name in self.names:
            if name not in given and name not in self._defaults:
                raise self._missing(name)
        return {name: given[name] if name in given else _copied(self._defaults[name]) for name in self.names}

    def encode(self, arguments: Mapping[str, object]) -> bytes:
        """Encode complete arguments. Raises InvalidInput naming the argument that does not fit.

        An argument that equals the default of its parameter is left out, so that older code, which does not know a new
        parameter yet, can read what newer code enqueues. A codec of the user's own gets all arguments.
        """
        if not isinstance(self._codec, TypedCodec):
            return self._encoded(self._as_struct(arguments))
        if not self._defaults:
            return self._encoded(arguments)
        plain = self._plain_defaults
        data = self._encoded({name: each for name, each in arguments.items() if not _is_default(plain, name, each)})
        return data if not self._other_defaults else self._without(self._other_defaults, data)

    def encoded_defaults(self, names: Iterable[str]) -> dict[str, msgspec.Raw]:
        """The encoded defaults of those among these parameters that have one."""
        found: dict[str, msgspec.Raw] = {}
        for name in names:
            if self.plain_json and name in self._defaults:
                alone = _struct_codec(_struct(self.job_type, [self._parameters[name]]))
                try:
                    found |= fields_of_json.decode(alone.encode({name: self._defaults[name]}))
                except ValueMismatch:
                    continue  # a default that does not fit its annotation is filled in, never stored
        return found

    def _encoded(self, value: object) -> bytes:
        try:
            return self._codec.encode(value)
        except ValueMismatch as error:
            placed = self._located(error, value)
            raise self._invalid_input(placed) from placed.unless_hidden(self.secrets)

    def _located(self, error: ValueMismatch, value: object) -> ValueMismatch:
        """The mismatch with its argument, if the codec did not name it, as for text that is no valid Unicode."""
        if error.path != ROOT or not isinstance(value, Mapping):
            return error
        for name, item in cast("Mapping[str, object]", value).items():
            try:
                _struct_codec(_struct(self.job_type, [self._parameters[name]])).encode({name: item})
            except ValueMismatch as alone:
                return alone.under(f".{name}") if alone.path == ROOT else alone
        return error

    @cached_property
    def _other_defaults(self) -> dict[str, bytes]:
        """Encoded defaults of objects, which may change or be not comparable, as they were on first use."""
        others = [name for name in self._defaults if name not in self._plain_defaults]
        return {name: bytes(raw) for name, raw in self.encoded_defaults(others).items()}

    def _without(self, defaults: Mapping[str, bytes], data: bytes) -> bytes:
        given = fields_of_json.decode(data)
        kept = {name: raw for name, raw in given.items() if defaults.get(name) != bytes(raw)}
        return data if len(kept) == len(given) else msgspec.json.encode(kept)

    def decode(self, data: bytes) -> dict[str, object]:
        """Decode stored arguments. Raises InvalidInput naming one that is unknown, is missing or does not fit."""
        try:
            value = self._codec.decode(data)
        except ValueMismatch as error:
            raise self._invalid_input(error) from error.unless_hidden(self.secrets)
        assert isinstance(value, self.struct), f"the codec of {self.job_type} returned a {type(value).__name__}"
        return dict(zip(self.names, structs.astuple(value), strict=True))

    def from_json(self, data: bytes) -> dict[str, object]:
        """Read arguments that people or other programs wrote as a JSON object, by the annotations.

        The form is that of stored arguments, even if a codec of the user's own stores them in another form.
        """
        try:
            value = self._by_annotation.decode(data)
        except ValueMismatch as error:
            raise self._invalid_input(error) from error.unless_hidden(self.secrets)
        return dict(zip(self.names, structs.astuple(cast("Struct", value)), strict=True))

    def part_from_json(self, data: bytes) -> dict[str, object]:
        """Read some of the arguments, as `from_json` reads all of them; those that are missing are left out."""
        given = fields_of_json.decode(data)
        parameters = [each for name, each in self._parameters.items() if name in given]
        try:
            value = _struct_codec(_struct(self.job_type, parameters)).decode(data)
        except ValueMismatch as error:
            raise self._invalid_input(error) from error.unless_hidden(self.secrets)
        return dict(zip((each.name for each in parameters), structs.astuple(cast("Struct", value)), strict=True))

    def merged_with_stored(self, stored: bytes, given: object) -> object:
        """The stored arguments, of which those that are `given` by name replace some.

        If the stored arguments do not fit the code any more, `given` has to be complete.
        """
        if not isinstance(given, Mapping):
            return given
        try:
            return {**self.decode(stored), **cast("Mapping[str, object]", given)}
        except InvalidInput:
            return cast("object", given)

    @cached_property
    def _by_annotation(self) -> TypedCodec:
        return self._codec if isinstance(self._codec, TypedCodec) else _struct_codec(self.struct)

    def _as_struct(self, arguments: Mapping[str, object]) -> Struct:
        return self.struct(**dict(zip(self.struct.__struct_fields__, arguments.values(), strict=True)))

    def _invalid_input(self, mismatch: ValueMismatch) -> InvalidInput:
        error = mismatch.hiding(self.secrets)
        if error.path == ROOT and (absent := _ABSENT.fullmatch(error.problem)) is not None:
            what, name = absent.groups()
            return self._missing(name) if what == "missing required" else self._unknown(name)
        inside = _INSIDE.fullmatch(error.path)
        if inside is None:
            return InvalidInput(f"{self.job_type}: the arguments do not fit: {error.without_value()}")
        name, rest = inside.groups()
        return InvalidInput(f"{self.job_type}: argument {name!r}: {error.at(ROOT + rest)}", field=name)

    def _missing(self, name: str) -> InvalidInput:
        return InvalidInput(f"{self.job_type}: argument {name!r} is missing ({self._takes()})", field=name)

    def _unknown(self, name: str) -> InvalidInput:
        near = difflib.get_close_matches(str(name), self.names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return InvalidInput(f"{self.job_type}: unknown argument {name!r}{hint} ({self._takes()})", field=name)

    def _takes(self) -> str:
        return f"it takes {', '.join(self.names)}" if self.names else "it takes none"


def _is_default(defaults: Mapping[str, object], name: str, value: object) -> bool:
    """Whether a value equals the default of its parameter, where True does not equal 1, and -0.0 does not equal 0.0."""
    if name not in defaults:
        return False
    default = defaults[name]
    same = value is default or (type(value) is type(default) and value == default)
    return same and (not isinstance(value, float) or repr(value) == repr(default))


def _struct_codec(struct: type[Struct]) -> TypedCodec:
    info = mi.type_info(struct)
    assert isinstance(info, mi.StructType)
    # Arguments come as a mapping, so only the types of the fields decide how they are encoded, and not the Struct.
    return TypedCodec(struct, shape_of(*(field.type for field in info.fields)))


def _struct(job_type: str, parameters: Sequence[Parameter]) -> type[Struct]:
    """The Struct of these parameters. Its attributes are f0, f1, ..., because some names cannot be attributes."""
    fields = {f"f{index}": each for index, each in enumerate(parameters)}
    return msgspec.defstruct(
        f"{job_type}_input",
        [(name, each.annotation, *_default(each.default)) for name, each in fields.items()],
        rename={name: each.name for name, each in fields.items()},
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _default(value: object) -> tuple[Any, ...]:
    if value is REQUIRED:
        return ()
    if isinstance(value, _SCALARS):
        return (value,)
    own = _copied(value)
    return (msgspec.field(default_factory=lambda: _copied(own)),)


def _copied(default: object) -> object:
    """A copy of a default, so that what a handler changes in it changes no other job and no other attempt."""
    if isinstance(default, _SCALARS):
        return default
    try:
        return deepcopy(default)
    except Exception:  # of a class that cannot be copied
        return default

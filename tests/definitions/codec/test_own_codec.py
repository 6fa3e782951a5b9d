"""D5: a codec of the user's own, per type."""

from __future__ import annotations

from typing import Any

import pytest

from ropewalk.definitions.codec.codec import JsonCodec
from ropewalk.definitions.job_types.decorator import job
from ropewalk.errors import InvalidInput


class Reversed:
    """Stands for encryption: bytes that are no JSON, made of JSON."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def encode(self, value: object, annotation: object) -> bytes:
        self.seen.append(annotation)
        return JsonCodec().encode(value, annotation)[::-1]

    def decode(self, data: bytes, annotation: object) -> object:
        return JsonCodec().decode(data[::-1], annotation)


class Opaque:
    """A class that only a codec of one's own can know."""


class Constant:
    def encode(self, value: object, annotation: object) -> bytes:
        return b"constant"

    def decode(self, data: bytes, annotation: Any) -> object:
        assert data == b"constant"
        return Opaque() if annotation is Opaque else annotation(f0=Opaque())


def test_it_encodes_input_and_result() -> None:
    codec = Reversed()

    @job(codec=codec)
    async def secret(a: int, b: set[int], c: str = "x") -> int | None: ...

    built = secret(1, {2})
    assert built.input == b'}"x":"c",]2[:"b",1:"a"{'
    assert secret.decode_input(built.input) == {"a": 1, "b": {2}, "c": "x"}
    assert secret.arguments_from_json('{"a": 1, "b": [2]}') == {"a": 1, "b": {2}, "c": "x"}, "people write plain JSON"
    assert secret.encode_result(12) == b"21"
    assert secret.decode_result(b"21") == 12
    assert secret.encode_result(None) is None
    assert secret.decode_result(None) is None
    assert [getattr(each, "__name__", each) for each in codec.seen] == ["secret_input", int | None, int | None]


def test_its_refusals_come_through() -> None:
    @job(codec=Reversed())
    async def secret(a: int) -> int: ...

    with pytest.raises(InvalidInput, match=r"secret: argument 'a': expected `int`, got `str`"):
        secret("x")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="unknown argument 'b'"):
        secret.from_arguments({"a": 1, "b": 2})
    with pytest.raises(InvalidInput, match="this is not JSON"):
        secret.decode_result(b"}")


def test_it_may_know_classes_that_the_default_does_not() -> None:
    @job(codec=Constant())
    async def handle(a: Opaque) -> Opaque: ...

    built = handle(Opaque())
    assert built.input == b"constant"
    assert isinstance(handle.decode_input(built.input)["a"], Opaque)
    assert isinstance(handle.decode_result(b"constant"), Opaque)

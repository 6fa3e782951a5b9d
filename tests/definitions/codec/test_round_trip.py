"""Annotations and values drawn at random: what is accepted comes back equal and of the same types.

`ROPEWALK_ANNOTATION=<seed>` repeats the one annotation that a failure names.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from datetime import datetime, time
from enum import Enum
from random import Random
from typing import Any

import msgspec
import pytest

from ropewalk.definitions.codec.codec import DEFAULT_CODEC, typed_codec
from ropewalk.definitions.job_types.arguments import Arguments
from ropewalk.definitions.job_types.contract import Returns
from ropewalk.definitions.job_types.signature import Parameter
from ropewalk.errors import InvalidInput
from tests.budget import BUDGET
from tests.definitions.codec.drawing import Draw, annotation
from tests.tables import NoteRow

pytestmark = pytest.mark.drawn

VALUES = 5_000 if BUDGET == 1 else 20_000 * BUDGET
PER_ANNOTATION = 25
TABLE = "The codec: values drawn at random"
ONE = os.environ.get("ROPEWALK_ANNOTATION")


def drawn_annotations(values: int, first: int) -> Iterator[tuple[int, Any, Draw, Random]]:
    """Only those that a handler may declare. Raises nothing where msgspec could not tell members of a union apart."""
    found, seed = 0, first
    while found * PER_ANNOTATION < values:
        random = Random(int(ONE) if ONE is not None else seed)
        declared, draw = annotation(random)
        seed += 1
        try:
            typed_codec(declared)
        except TypeError:
            continue
        found += 1
        yield seed - 1, declared, draw, random


def test_what_is_drawn_for_an_annotation_is_accepted_and_comes_back(note_row: NoteRow) -> None:
    tried = annotations = 0
    for seed, declared, draw, random in drawn_annotations(VALUES, 0):
        annotations += 1
        ways = _ways(declared)
        for number in range(PER_ANNOTATION):
            value = draw(random)
            encode, decode = ways[number % len(ways)]
            try:
                back = decode(encode(value))
                assert exact(back) == exact(value)
            except Exception as error:
                error.add_note(f"{declared}\n{value!r}\nrepeat: ROPEWALK_ANNOTATION={seed} pytest {__file__}")
                raise
            tried += 1
    note_row(TABLE, values="for their own annotation", annotations=annotations, tried=tried, came_back=tried)
    assert tried >= VALUES


def test_what_was_drawn_for_another_annotation_is_refused_or_can_be_read_back(note_row: NoteRow) -> None:
    tried = annotations = accepted = 0
    for seed, declared, _, random in drawn_annotations(VALUES, 1_000_000):
        annotations += 1
        for _ in range(PER_ANNOTATION):
            tried += 1
            value = annotation(random, depth=1)[1](random)
            try:
                data = DEFAULT_CODEC.encode(value, declared)
            except InvalidInput:
                continue
            try:
                back = DEFAULT_CODEC.decode(data, declared)
                assert exact(DEFAULT_CODEC.decode(DEFAULT_CODEC.encode(back, declared), declared)) == exact(back)
            except Exception as error:
                error.add_note(f"{declared}\n{value!r}\nrepeat: ROPEWALK_ANNOTATION={seed} pytest {__file__}")
                raise
            accepted += 1
    refused = tried - accepted
    note_row(TABLE, values="for another one", annotations=annotations, tried=tried, came_back=accepted, refused=refused)
    assert accepted > VALUES // 50


def _ways(declared: Any) -> list[tuple[Any, Any]]:
    """A value alone, as an argument among others, and as a result."""
    parameters = [
        Parameter(name="value", annotation=declared),
        Parameter(name="factor", annotation=float),
        Parameter(name="nothing", annotation=float | None, default=None),
    ]
    arguments = Arguments("drawn", parameters, DEFAULT_CODEC)
    returns = Returns("drawn", declared, DEFAULT_CODEC)
    others = {"factor": float("nan"), "nothing": None}
    return [
        (lambda value: DEFAULT_CODEC.encode(value, declared), lambda data: DEFAULT_CODEC.decode(data, declared)),
        (lambda value: arguments.encode({"value": value, **others}), lambda data: arguments.decode(data)["value"]),
        (returns.encode, returns.decode),
    ]


def exact(value: Any) -> Any:
    """A form in which equal means: same types, same NaN, same offsets (a fold is an offset already)."""
    kind = type(value)
    match value:
        case list() | tuple():
            return kind, [exact(each) for each in value]
        case dict():
            return kind, [(exact(key), exact(each)) for key, each in value.items()]
        case set() | frozenset():
            return kind, sorted(map(exact, value), key=repr)
        case datetime() | time():
            return kind, value.isoformat()
        case msgspec.Struct():
            return kind, [exact(getattr(value, name)) for name in value.__struct_fields__]
        case Enum():
            return kind, value
        case _ if dataclasses.is_dataclass(kind):
            return kind, [exact(getattr(value, each.name)) for each in dataclasses.fields(kind)]
        case _:
            return kind, repr(value)

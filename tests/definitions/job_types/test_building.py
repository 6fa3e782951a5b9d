"""D1, D9: calling a job type builds a job: arguments bound, checked and encoded, an id assigned."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import pytest

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job import Job, set_id_generator
from ropewalk.definitions.job_types.decorator import job
from ropewalk.errors import InvalidInput


@dataclass
class Address:
    street: str
    lines: list[int] = field(default_factory=list[int])


@job
async def send(ctx: Context, to: str, copies: int = 2, *, urgent: bool = False) -> None: ...


@job
async def visit(address: Address, extra: dict[str, object] | None = None, limit: Limit = 3) -> None: ...


Limit = Annotated[int, msgspec.Meta(ge=1)]


@job
async def empty() -> None: ...


@job
async def odd_names(self: int, __mangled: int, _fields: int, type: str) -> None: ...  # noqa: A002 # names a Struct lacks


def test_arguments_are_complete_and_in_order() -> None:
    for built in (send("ann"), send(to="ann"), send.from_arguments({"to": "ann"})):
        assert built.arguments == {"to": "ann", "copies": 2, "urgent": False}
        assert built.input == b'{"to":"ann"}', "what equals its default is not stored"
    assert send(urgent=True, copies=1, to="bob").input == b'{"to":"bob","copies":1,"urgent":true}'
    assert empty().input == b"{}"


def test_any_parameter_name_works() -> None:
    built = odd_names(1, 2, 3, "x")
    assert json.loads(built.input) == {"self": 1, "__mangled": 2, "_fields": 3, "type": "x"}
    assert odd_names.decode_input(built.input) == dict(built.arguments)


@pytest.mark.parametrize(
    ("call", "field", "told"),
    [
        (send, "to", "send: argument 'to' is missing (it takes to, copies, urgent)"),
        (lambda: send(1), "to", "send: argument 'to': expected `str`, got `int`"),  # type: ignore[arg-type]
        (lambda: send("a", "b"), "copies", "send: argument 'copies': expected `int`, got `str`"),  # type: ignore[arg-type]
        (lambda: send("a", True), "copies", "argument 'copies': expected `int`, got `bool`"),
        (lambda: send("a", 1, True), None, "send takes 2 positional arguments, not 3"),  # type: ignore[call-arg]
        (lambda: send("a", to="b"), "to", "send: argument 'to' is given twice"),  # type: ignore[misc]
        (lambda: send("a", copy=1), "copy", "send: unknown argument 'copy'; did you mean 'copies'?"),  # type: ignore[call-arg]
        (lambda: send("a\ud800"), "to", "surrogates not allowed"),
        (lambda: empty(1), None, "empty takes 0 positional arguments, not 1 (it takes none)"),  # type: ignore[call-arg]
        (
            lambda: visit(Address("a", [1, "b"])),  # type: ignore[list-item]
            "address",
            "argument 'address': expected `int`, got `str` at $.lines[1]",
        ),
        (lambda: visit("street"), "address", "argument 'address': expected `object`, got `str`"),  # type: ignore[arg-type]
        (lambda: visit(Address("a"), {"k": [object()]}), "extra", "argument 'extra': a builtins.object cannot"),
        (lambda: visit(Address("a"), {"k": [object()]}), "extra", "at $['k'][0]"),
        (lambda: visit(Address("a"), limit=0), "limit", "argument 'limit': expected `int` >= 1"),
        (lambda: send.from_arguments({}), "to", "argument 'to' is missing"),
        (lambda: send.from_arguments({"to": "a", "x": 1}), "x", "unknown argument 'x'"),
        (lambda: send.from_arguments({"to": 1}), "to", "argument 'to': expected `str`"),
        (lambda: send.from_arguments({"to": "a", 1: 2}), 1, "unknown argument 1"),
        (lambda: send.encode_input({"copies": 1}), "to", "argument 'to' is missing"),
    ],
)
def test_wrong_calls_name_the_argument(call: Callable[[], Any], field: str | None, told: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        call()
    assert told in str(refusal.value)
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("data", "field", "told"),
    [
        (b'{"copies":2}', "to", "argument 'to' is missing"),
        (b'{"to":"a","x":1}', "x", "unknown argument 'x'"),
        (b'{"to":"a","copies":"2"}', "copies", "argument 'copies': expected `int`, got `str`"),
        (b'{"to":"a","copies":2.0}', "copies", "argument 'copies': expected `int`, got `float`"),
        (b"[1]", None, "expected `object`, got `array`"),
        (b"{", None, "this is not JSON"),
        (b"\xff", None, "this is not JSON"),
    ],
)
def test_payloads_that_do_not_fit(data: bytes, field: str | None, told: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        send.decode_input(data)
    assert told in str(refusal.value)
    assert refusal.value.field == field


@job
async def note(text: str = "", number: int = 0, tags: list[str] = [], password: str = "") -> None: ...  # noqa: B006 # a default


@pytest.mark.parametrize(
    ("given", "field"),
    [({"text": "\ud800"}, "text"), ({"number": 10**5000}, "number"), ({"tags": ["a", "\ud800"]}, "tags")],
)
def test_what_cannot_be_written_as_json_names_its_argument(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput, match=f"^note: argument '{field}': ") as refused:
        note.from_arguments({"text": "fits", **given})
    assert refused.value.field == field
    with pytest.raises(InvalidInput, match=r"^note: argument 'password': the value does not fit$"):
        note(password="hunter2\ud800")


def test_a_deep_misfit_names_its_path() -> None:
    with pytest.raises(InvalidInput, match=r"argument 'address': expected `int`, got `null` at \$\.lines\[1\]"):
        visit.decode_input(b'{"address":{"street":"a","lines":[1,null]}}')
    with pytest.raises(InvalidInput, match=r"argument 'address': object missing required field `street`"):
        visit.decode_input(b'{"address":{}}')


def test_defaults_fill_in_what_an_older_producer_did_not_know() -> None:
    assert send.decode_input(b'{"to":"a"}') == {"to": "a", "copies": 2, "urgent": False}
    assert visit.decode_input(b'{"address":{"street":"a"}}') == {"address": Address("a"), "extra": None, "limit": 3}


def test_unannotated_parameters_take_what_the_untyped_codec_restores() -> None:
    @job
    async def loose(ctx: Context, a, b: Any = None) -> None: ...  # type: ignore[no-untyped-def]

    when = datetime(2026, 11, 16, tzinfo=UTC)
    built = loose({when}, (1, 2))
    assert loose.decode_input(built.input) == {"a": {when}, "b": (1, 2)}
    with pytest.raises(InvalidInput, match=r"argument 'a': a builtins\.object cannot be restored exactly"):
        loose(object())


# ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_using_keeps_the_id_and_stacks() -> None:
    built = send("ann")
    later = built.using(delay=5, priority=1).using(priority=2)
    assert later.id == built.id
    assert later.options == {"delay": 5, "priority": 2}
    assert built.options == {}
    assert later.input == built.input


def test_using_another_id() -> None:
    renamed = send("ann").using(id="mine", delay=1)
    assert (renamed.id, renamed.options) == ("mine", {"delay": 1})


def test_an_unknown_option_is_refused_at_once() -> None:
    with pytest.raises(InvalidInput, match="'dely' is no option of a job; did you mean 'delay'") as refusal:
        send("ann").using(dely=3)  # type: ignore[call-arg]
    assert refusal.value.field == "dely"


def test_again_is_the_same_work_with_a_new_id() -> None:
    built = send("ann").using(delay=5)
    again = built.again()
    assert again.id > built.id
    assert (again.type, again.input, again.arguments, again.options) == (
        send,
        built.input,
        built.arguments,
        built.options,
    )


def test_equality_is_id_and_content() -> None:
    built = send("ann")
    assert built == built.using()
    assert not built != built.using()  # noqa: SIM202 # both operators are meant
    assert not built == built.using(delay=1)  # noqa: SIM201 # both operators are meant
    assert hash(built) == hash(built.using(delay=1))
    assert built != built.using(delay=1)
    assert built != built.again()
    assert built.using(id="x") != send("bob").using(id="x")
    assert built != "job"


def test_a_job_cannot_be_changed() -> None:
    built = send("ann").using(delay=1)
    with pytest.raises(AttributeError):
        built.id = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        built.arguments["to"] = "bob"  # type: ignore[index]
    with pytest.raises(TypeError):
        built.options["delay"] = 2


def test_the_input_is_taken_when_the_job_is_built() -> None:
    address = Address("a", [1])
    built = visit(address)
    address.lines.append(2)
    assert visit.decode_input(built.input)["address"] == Address("a", [1])


def test_repr_is_short() -> None:
    assert repr(send("ann", 3)) == "Job(send to='ann' copies=3 urgent=False)"
    assert len(repr(send("x" * 10_000))) < 200


def test_ids_come_from_the_generator_that_was_set() -> None:
    set_id_generator(iter(["one", "two"]).__next__)
    try:
        built: Job[None, Any] = empty()
        assert (built.id, built.again().id) == ("one", "two")
    finally:
        set_id_generator(None)
    assert len(empty().id) == 36

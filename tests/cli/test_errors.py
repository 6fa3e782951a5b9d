"""Every error ropewalk raises has an exit code and becomes one line."""

from __future__ import annotations

import pytest

from ropewalk import (
    Conflict,
    DefinitionError,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    RopewalkError,
    SchemaMismatch,
    StoreUnavailable,
    UnknownJobType,
    WeakDurability,
)
from ropewalk.cli.errors import complain
from ropewalk.fleet.exit_codes import ExitCode, code_for


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound("x"), ExitCode.FAILED),
        (Conflict("x"), ExitCode.FAILED),
        (RopewalkError("x"), ExitCode.FAILED),
        (InvalidInput("x"), ExitCode.USAGE),
        (DefinitionError("x"), ExitCode.USAGE),
        (UnknownJobType("x"), ExitCode.USAGE),
        (StoreUnavailable("x"), ExitCode.STORE),
        (OutcomeUnknown("x"), ExitCode.STORE),
        (SchemaMismatch("x"), ExitCode.STORE),
        (WeakDurability("x"), ExitCode.STORE),
    ],
)
def test_codes(error: RopewalkError, code: ExitCode) -> None:
    assert code_for(error) is code


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (StoreUnavailable("disk full"), ExitCode.STORE),
        (SchemaMismatch("newer"), ExitCode.STORE),
        (RuntimeError("broken"), ExitCode.FAILED),
    ],
)
def test_a_worker_that_gave_up(cause: Exception, code: ExitCode) -> None:
    gave_up = RopewalkError("the worker gave up")
    gave_up.__cause__ = cause
    assert code_for(gave_up) is code


def test_a_complaint_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    complain("first\n  second\tthird")
    assert capsys.readouterr().err == "error: first second third\n"

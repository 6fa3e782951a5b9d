"""Checks of options that only definitions have: leases, backoffs, classifiers. The others are in domain/checks.py."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any, Final

from ropewalk.domain.checks import function, instance, wrong
from ropewalk.domain.jobs.lease import LEASE_MIN
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.time import SECOND, Seconds, Span, to_span
from ropewalk.errors import InvalidInput

POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
"""The kinds of parameters that take a positional argument."""


def lease(value: Seconds, field: str) -> Span:
    """Check the duration of a lease. Raises InvalidInput."""
    if (us := to_span(value, field)) < LEASE_MIN:
        raise wrong(field, value, f"at least {LEASE_MIN / SECOND:g} second")
    return us


def backoff(value: object, field: str) -> Backoff:
    """Check a backoff that is stored with a job or in an app's defaults; a function cannot be. Raises InvalidInput."""
    if callable(value) and not isinstance(value, Backoff):
        raise InvalidInput(f"{field} is a function, which cannot be stored: give it to @job({field}=...)", field=field)
    return instance(value, field, Backoff, "Backoff.exponential(1, max=60)")


def classifier(value: object, field: str) -> Callable[..., Any]:
    """Check that this is a plain function of an exception, or of an exception and an attempt. Raises InvalidInput."""
    decide = function(value, field)
    signature = signature_of(decide)
    given = ("error", 1) if takes_attempt(decide) else ("error",)
    try:
        if signature is not None:
            signature.bind(*given)
    except TypeError:
        fits = False
    else:
        fits = not inspect.iscoroutinefunction(decide)
    if not fits:
        raise wrong(field, value, "a function of the exception, or of the exception and the attempt, and not async")
    return decide


def takes_attempt(decide: Callable[..., object]) -> bool:
    """Whether a classifier takes the number of the attempt as its second argument.

    It does if its second parameter has no default value or is named `attempt`. Any other second parameter is a setting
    of the function's own.
    """
    signature = signature_of(decide)
    parameters = (
        [] if signature is None else [each for each in signature.parameters.values() if each.kind in POSITIONAL]
    )
    return len(parameters) > 1 and (parameters[1].default is Parameter.empty or parameters[1].name == "attempt")


def signature_of(called: Callable[..., object]) -> inspect.Signature | None:
    """The signature of a function; None for a function in C that has none."""
    try:
        return inspect.signature(called)
    except (TypeError, ValueError):
        return None

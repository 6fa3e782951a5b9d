"""Checks of what only definitions have: leases, backoffs, classifiers. The general ones are in domain/checks.py."""

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

BY_PLACE: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def lease(value: Seconds, field: str) -> Span:
    if (us := to_span(value, field)) < LEASE_MIN:
        raise wrong(field, value, f"at least {LEASE_MIN / SECOND:g} second")
    return us


def backoff(value: object, field: str) -> Backoff:
    """A backoff that travels with a job or an app's defaults: data, not a function."""
    if callable(value) and not isinstance(value, Backoff):
        raise InvalidInput(f"{field} is a function, which cannot be stored: give it to @job({field}=...)", field=field)
    return instance(value, field, Backoff, "Backoff.exponential(1, max=60)")


def classifier(value: object, field: str) -> Callable[..., Any]:
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
    """Whether a classifier wants the number of the attempt: by a second parameter that it needs, or that is called so.

    A second parameter that has a default value is a setting of the function's own.
    """
    signature = signature_of(decide)
    places = [] if signature is None else [each for each in signature.parameters.values() if each.kind in BY_PLACE]
    return len(places) > 1 and (places[1].default is Parameter.empty or places[1].name == "attempt")


def signature_of(called: Callable[..., object]) -> inspect.Signature | None:
    """None for what is written in C and does not tell."""
    try:
        return inspect.signature(called)
    except (TypeError, ValueError):
        return None

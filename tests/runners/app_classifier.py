"""Classifiers of an app, in a module that the handlers themselves do not import."""

from __future__ import annotations

import functools
import os

from ropewalk.definitions.options import Classifier, Decision


def by_kind(error: BaseException) -> Decision:
    return "abort" if isinstance(error, KeyError) else None


def at_the_third(_error: BaseException, attempt: int) -> Decision:
    return "abort" if attempt == 3 else None


def broken(error: BaseException) -> Decision:
    raise RuntimeError(f"cannot classify {error!r}")


class Rules:
    @classmethod
    def all_final(cls, _error: BaseException) -> Decision:
        return "abort"

    def unbound(self, _error: BaseException) -> Decision:
        return "abort"


if "ROPEWALK_TEST_HIDE_CLASSIFIER" not in os.environ:

    def only_here(_error: BaseException) -> Decision:
        return "abort"


nameless: Classifier = lambda _error: "abort"  # noqa: E731 # the point is that it has no name
partial = functools.partial(by_kind)

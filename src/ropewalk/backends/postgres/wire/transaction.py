"""How the statements of a transaction get to the server: what nobody waits for travels with what follows.

A round trip costs more than most statements do, and beside a thread that computes it ends with a wait for the
interpreter: 1.3 ms, whatever was asked. So a transaction of ours begins with its first statement, and what only has to
be done by the commit goes along with it (`PipelinedTransaction`). A user's transaction is the user's: there every
statement is run where it stands (`UserTransactionWire`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Protocol, TypeAlias

from ropewalk.backends.postgres.wire.pipeline import Pipeline
from ropewalk.backends.postgres.wire.statement import Given, Reply, Statement
from ropewalk.domain.time import Instant

COMMIT: Final = Statement(b"COMMIT")
_SAVEPOINT: Final = Statement(b"SAVEPOINT part")
_RELEASE: Final = Statement(b"RELEASE part")
_BACK: Final = (Statement(b"ROLLBACK TO part"), _RELEASE)
ROLLBACK: Final = Statement(b"ROLLBACK")


class Answer(Protocol):
    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> tuple[Any, ...] | None: ...


Heard: TypeAlias = Callable[[Answer], None]


class Wire(Protocol):
    """What a Tx needs of its connection."""

    @property
    def now(self) -> Instant:
        """The time of the transaction."""
        ...

    @property
    def known_now(self) -> Instant | None:
        """The same for a statement that can find it out itself; None where it has to."""
        ...

    def ask(self, said: Sequence[Statement]) -> Sequence[Answer]:
        """Run them one after the other; the answer of each."""
        ...

    def ask_last(self, said: Sequence[Statement]) -> Sequence[Answer]:
        """The same together with the commit: what is asked for after it begins another transaction."""
        ...

    def later(self, said: Statement, heard: Heard) -> None:
        """Run it by the commit, behind everything said before and before everything said after it."""
        ...

    def savepoint(self) -> AbstractContextManager[None]:
        """What is done inside is undone when it raises; the transaction goes on."""
        ...


class Talk(Protocol):
    """As much of a connection as is used in a transaction of a user's."""

    @property
    def closed(self) -> bool: ...

    def execute(self, sql: bytes, values: Given = None, /, *, prepare: bool, binary: bool) -> Answer: ...


class PipelinedTransaction:
    """A transaction on a connection of ours, from `begin` to `commit`.

    Without a `clock` the time is the server's, which the second statement of `begin` tells.
    """

    def __init__(self, post: Pipeline, begin: Sequence[Statement], clock: Callable[[], Instant] | None) -> None:
        self._post = post
        self._begin = begin
        self._clock = clock
        self._waiting: list[tuple[Statement, Heard]] = []
        self._used = False
        """whether anything has happened that must not be undone"""
        self._now: Instant | None = None
        self._begun = False
        self.tried = False
        """whether anything was sent"""
        self.answered = False
        """whether anything went well: a connection that broke before that was not in use"""
        self.committing = False
        """whether a commit is under way: nobody knows what became of it if the connection breaks"""

    @property
    def now(self) -> Instant:
        now = self.known_now
        if now is None:
            self._travel(())
            now = self.known_now
            assert now is not None
        return now

    @property
    def known_now(self) -> Instant | None:
        if self._now is None and self._clock is not None:
            self._now = self._clock()
        return self._now

    def ask(self, said: Sequence[Statement]) -> Sequence[Answer]:
        self._used = True
        return self._travel(said)

    def ask_last(self, said: Sequence[Statement]) -> Sequence[Answer]:
        answers = self._travel_last(said)
        self._begun = self._used = False
        self._now = None
        return answers

    def later(self, said: Statement, heard: Heard) -> None:
        self._used = True
        self._waiting.append((said, heard))

    def commit(self) -> None:
        """Where nothing was asked for, nothing has begun."""
        if self._begun or self._waiting:
            self._travel_last(())

    @contextmanager
    def savepoint(self) -> Generator[None]:
        """At its beginning a transaction needs none: it can be begun again, at another time."""
        first = not self._used
        if not first:
            self.ask([_SAVEPOINT])
        try:
            yield
        except BaseException:
            self._waiting.clear()
            if not self._post.closed:
                self._go_back(first=first)
            raise
        if not first:
            self.later(_RELEASE, _heard)

    def _go_back(self, *, first: bool) -> None:
        if not first:
            self._travel(_BACK)
            return
        if self.tried:
            self._post.together([ROLLBACK])
        self._begun = self._used = False
        self._now = None

    def _travel_last(self, said: Sequence[Statement]) -> list[Reply]:
        self.committing = True
        *answers, committed = self._travel([*said, COMMIT])
        told = committed.status
        assert told == b"COMMIT", f"a transaction in which a statement had failed was committed: {told!r}"
        self.committing = False
        return answers

    def _travel(self, said: Sequence[Statement]) -> list[Reply]:
        """One round trip, with all that waits."""
        begin, waiting = () if self._begun else self._begin, self._waiting
        self.tried = True
        answers = self._post.together([*begin, *(late for late, _ in waiting), *said])
        self._begun, self._waiting, self.answered = True, [], True
        if begin and self.known_now is None:
            self._now = self._told_now(answers[1])
        behind = len(begin) + len(waiting)
        for (_, heard), answer in zip(waiting, answers[len(begin) : behind], strict=True):
            heard(answer)
        return answers[behind:]

    def _told_now(self, answer: Answer) -> Instant:
        found = answer.fetchone()
        assert found is not None
        now: Instant = found[0]
        return now


class UserTransactionWire:
    """A transaction that somebody else began, and will end."""

    def __init__(self, talk: Talk, now: Instant) -> None:
        self._talk = talk
        self.now = now
        self.known_now = now

    def ask(self, said: Sequence[Statement]) -> Sequence[Answer]:
        return [self._talk.execute(each.statement, each.values, prepare=True, binary=True) for each in said]

    def ask_last(self, said: Sequence[Statement]) -> Sequence[Answer]:
        return self.ask(said)

    def later(self, said: Statement, heard: Heard) -> None:
        [answer] = self.ask([said])
        heard(answer)

    @contextmanager
    def savepoint(self) -> Generator[None]:
        self.ask([_SAVEPOINT])
        try:
            yield
        except BaseException:
            if not self._talk.closed:
                self.ask(_BACK)
            raise
        self.ask([_RELEASE])


def _heard(_: Answer) -> None:
    """Nothing of it matters."""

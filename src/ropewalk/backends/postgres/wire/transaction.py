"""How the statements of a transaction get to the server: a statement whose answer nobody needs is sent together with
the next one.

A round trip costs more than most statements, and beside a thread that computes it ends with a wait for the interpreter:
1.3 ms, whatever the statement. So a transaction of ropewalk begins together with its first statement, and statements
that only have to run before the commit wait for the next round trip (`PipelinedTransaction`). In a user's transaction,
every statement runs at once (`UserTransactionWire`).
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
    """The answer of a statement."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> tuple[Any, ...] | None: ...


OnAnswer: TypeAlias = Callable[[Answer], None]
"""Such a function is called with the answer of a statement that was postponed."""


class Wire(Protocol):
    """What a Tx needs of its connection."""

    @property
    def now(self) -> Instant:
        """The time of the transaction."""
        ...

    @property
    def known_now(self) -> Instant | None:
        """The time of the transaction for a statement that can read the clock itself; None if it has to."""
        ...

    def run(self, statements: Sequence[Statement]) -> Sequence[Answer]:
        """Runs statements one after another, and returns the answer of each."""
        ...

    def run_last(self, statements: Sequence[Statement]) -> Sequence[Answer]:
        """Runs statements and commits, in one round trip. Later statements run in another transaction."""
        ...

    def run_later(self, statements: Statement, on_answer: OnAnswer) -> None:
        """Runs a statement before the commit, after all statements before it and before all that follow."""
        ...

    def savepoint(self) -> AbstractContextManager[None]:
        """Undoes everything that is done inside this context if it raises; the transaction goes on."""
        ...


class PlainConnection(Protocol):
    """The methods of a connection that are used in a user's transaction."""

    @property
    def closed(self) -> bool: ...

    def execute(self, sql: bytes, values: Given = None, /, *, prepare: bool, binary: bool) -> Answer: ...


class PipelinedTransaction:
    """A transaction on a connection of ropewalk, from `begin` to `commit`.

    Without a `clock`, the time is that of the server, which the second statement of `begin` returns.
    """

    def __init__(self, pipeline: Pipeline, begin: Sequence[Statement], clock: Callable[[], Instant] | None) -> None:
        self._pipeline = pipeline
        self._begin = begin
        self._clock = clock
        self._waiting: list[tuple[Statement, OnAnswer]] = []
        self._used = False
        """Whether a statement has run or waits, so that the transaction can no longer be begun again without a loss."""
        self._now: Instant | None = None
        self._begun = False
        self.tried = False
        """Whether anything was sent."""
        self.answered = False
        """Whether a round trip succeeded. A connection that broke before the first one was not in use."""
        self.committing = False
        """Whether a commit is under way. If the connection breaks then, nobody knows whether it has happened."""

    @property
    def now(self) -> Instant:
        now = self.known_now
        if now is None:
            self._round_trip(())
            now = self.known_now
            assert now is not None
        return now

    @property
    def known_now(self) -> Instant | None:
        if self._now is None and self._clock is not None:
            self._now = self._clock()
        return self._now

    def run(self, statements: Sequence[Statement]) -> Sequence[Answer]:
        self._used = True
        return self._round_trip(statements)

    def run_last(self, statements: Sequence[Statement]) -> Sequence[Answer]:
        answers = self._round_trip_with_commit(statements)
        self._begun = self._used = False
        self._now = None
        return answers

    def run_later(self, statements: Statement, on_answer: OnAnswer) -> None:
        self._used = True
        self._waiting.append((statements, on_answer))

    def commit(self) -> None:
        """Commits. If no statement was run, no transaction has begun, and nothing is sent."""
        if self._begun or self._waiting:
            self._round_trip_with_commit(())

    @contextmanager
    def savepoint(self) -> Generator[None]:
        """At its beginning, a transaction needs no savepoint: it is rolled back, and begins again."""
        first = not self._used
        if not first:
            self.run([_SAVEPOINT])
        try:
            yield
        except BaseException:
            self._waiting.clear()
            if not self._pipeline.closed:
                self._roll_back(first=first)
            raise
        if not first:
            self.run_later(_RELEASE, _ignore)

    def _roll_back(self, *, first: bool) -> None:
        """Undoes the work since the savepoint, or the whole transaction if `first` is true."""
        if not first:
            self._round_trip(_BACK)
            return
        if self.tried:
            self._pipeline.run([ROLLBACK])
        self._begun = self._used = False
        self._now = None

    def _round_trip_with_commit(self, statements: Sequence[Statement]) -> list[Reply]:
        """Sends the statements together with the commit."""
        self.committing = True
        *answers, committed = self._round_trip([*statements, COMMIT])
        status = committed.status
        assert status == b"COMMIT", f"a transaction in which a statement had failed was committed: {status!r}"
        self.committing = False
        return answers

    def _round_trip(self, statements: Sequence[Statement]) -> list[Reply]:
        """Sends the statements in one round trip, together with all that wait."""
        begin, waiting = () if self._begun else self._begin, self._waiting
        self.tried = True
        answers = self._pipeline.run([*begin, *(late for late, _ in waiting), *statements])
        self._begun, self._waiting, self.answered = True, [], True
        if begin and self.known_now is None:
            self._now = self._now_in(answers[1])
        behind = len(begin) + len(waiting)
        for (_, on_answer), answer in zip(waiting, answers[len(begin) : behind], strict=True):
            on_answer(answer)
        return answers[behind:]

    def _now_in(self, answer: Answer) -> Instant:
        """Returns the time from the answer of the second statement of `begin`."""
        found = answer.fetchone()
        assert found is not None
        now: Instant = found[0]
        return now


class UserTransactionWire:
    """A transaction that a user began and will end."""

    def __init__(self, connection: PlainConnection, now: Instant) -> None:
        self._connection = connection
        self.now = now
        self.known_now = now

    def run(self, statements: Sequence[Statement]) -> Sequence[Answer]:
        return [self._connection.execute(each.statement, each.values, prepare=True, binary=True) for each in statements]

    def run_last(self, statements: Sequence[Statement]) -> Sequence[Answer]:
        return self.run(statements)

    def run_later(self, statements: Statement, on_answer: OnAnswer) -> None:
        [answer] = self.run([statements])
        on_answer(answer)

    @contextmanager
    def savepoint(self) -> Generator[None]:
        self.run([_SAVEPOINT])
        try:
            yield
        except BaseException:
            if not self._connection.closed:
                self.run(_BACK)
            raise
        self.run([_RELEASE])


def _ignore(_: Answer) -> None:
    """Does nothing, because nobody needs this answer."""

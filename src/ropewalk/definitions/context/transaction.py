"""`ctx.transaction()`: a transaction that commits the handler's own writes and the completion of its job together."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ropewalk.definitions.context.calls import Calls, to_be_awaited
from ropewalk.errors import Abort, InvalidInput, StoreUnavailable, TransactionNotCompleted
from ropewalk.ports.store.user_transactions import SqlValues, UserTransaction

if TYPE_CHECKING:
    from ropewalk.definitions.context.context import Context

T = TypeVar("T")

_NOTHING: Final = object()


class Transaction:
    """`async with ctx.transaction() as tx:` completes the job at the end of the block, with the value of `tx.complete`.

    If the block raises an error, everything is rolled back, and the attempt fails as usual. If the lease was lost
    meanwhile, everything is rolled back, and LeaseLost is raised. If the store does not answer, nothing is repeated,
    because user code has run inside; the attempt is given back and does not count. If the block ends without
    `tx.complete`, everything is rolled back, and TransactionNotCompleted is raised. After the block the job is
    completed: return what `tx.complete` returned, or nothing.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._transaction: UserTransaction | None = None
        self._value: object = _NOTHING

    def calls(self) -> Calls:
        """For the engine: the calls of this attempt that have to be awaited."""
        return self._context.calls()

    @to_be_awaited("tx.execute(...) of `with ctx.sync.transaction() as tx:`", owner="tx")
    async def execute(self, sql: str, values: SqlValues = ()) -> list[tuple[Any, ...]]:
        """Run one statement on the store's database, and return its rows."""
        if self._transaction is None:
            raise InvalidInput("a transaction is used inside its block: `async with ctx.transaction() as tx:`")
        with self._marking_unanswered():
            return await self._transaction.execute(sql, values)

    def complete(self, value: T) -> T:
        """Set what the job completes with when the block ends: a value, or a Result with jobs that follow."""
        self._value = value
        return value

    async def __aenter__(self) -> Transaction:
        with self._marking_unanswered():
            self._transaction = await self._context.port.begin_transaction()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        transaction, self._transaction = self._transaction, None
        assert transaction is not None
        with self._marking_unanswered():
            if error is not None:
                await transaction.rollback()
            elif self._value is _NOTHING:
                await transaction.rollback()
                raise TransactionNotCompleted(
                    "ctx.transaction() ended without tx.complete(...), and everything in its block was rolled back: "
                    "call tx.complete(value), or tx.complete(None), as the last thing in the block"
                )
            else:
                with self.calls().begin():
                    await self._context.port.commit(transaction, self._context, self._value)
                self._context.completed_with(self._value)

    if not TYPE_CHECKING:  # hidden from type checkers, so that they refuse `with`

        def __enter__(self) -> None:
            raise Abort(
                InvalidInput(
                    "`with ctx.transaction()` needs an `async with`: in a plain function use ctx.sync.transaction()"
                )
            )

        def __exit__(self, *_: object) -> None:
            """This is never called, but `with` requires it before it calls `__enter__`."""

    @contextmanager
    def _marking_unanswered(self) -> Generator[None, None, None]:
        try:
            yield
        except StoreUnavailable as error:
            self._context.port.mark_unanswered(error)
            raise


class SyncTransaction:
    """`with ctx.sync.transaction() as tx:` is the transaction of a handler in a thread; see Transaction."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._async_transaction = context.transaction()

    def execute(self, sql: str, values: SqlValues = ()) -> list[tuple[Any, ...]]:
        """Run one statement on the store's database, and return its rows."""
        return self._wait(self._async_transaction.execute(sql, values))

    def complete(self, value: T) -> T:
        """Set what the job completes with when the block ends."""
        return self._async_transaction.complete(value)

    def __enter__(self) -> SyncTransaction:
        self._wait(self._async_transaction.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wait(self._async_transaction.__aexit__(kind, error, trace))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._context.port.blocking(work)

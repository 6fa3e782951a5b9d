"""`Logs(secret_keys=...)` holds for all that the app logs, keeps and shows of an exception, whatever formats it."""

from __future__ import annotations

import asyncio
import io
import logging
import logging.handlers
from collections.abc import Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Annotated, Any

import pytest

from ropewalk import Context, JobFailed, Logs, Result, Secret, UnexpectedExit, job
from ropewalk.cli.worker.log import start_logging
from ropewalk.logging import JsonFormatter, TextFormatter
from tests.apps import MakeApp, embedded_store_kind

store_kind = embedded_store_kind

SECRETS = ("DE99", "4111-1111", "hunter2")
LOGS = Logs(secret_keys=("iban",))


@dataclass(frozen=True)
class Account:
    owner: str
    iban: str


@dataclass(frozen=True)
class Payment:
    card: Annotated[str, Secret]


class Refused(Exception):
    pass


def refused() -> Refused:
    error = Refused("ada", {"iban": "DE99"}, Payment("4111-1111"), {b"password": "hunter2"})
    error.__cause__ = LookupError(Account("ada", "DE99"))
    return error


def refuse(*_: object) -> Any:
    raise refused()


@job(max_attempts=1)
async def fails() -> None:
    raise refused()


@job(max_attempts=1)
def fails_in_a_thread() -> None:
    raise refused()


@job(max_attempts=1, executor="process")
def fails_in_a_process(ctx: Context) -> None:
    ctx.log.error("with %s", Account("ada", "DE99"), exc_info=refused())
    raise refused()


@job(max_attempts=1)
async def fails_in_a_group() -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(asyncio.to_thread(refuse))
        tasks.create_task(asyncio.to_thread(refuse))


@job(max_attempts=1)
async def names_its_argument(holder: Annotated[str, Secret]) -> None:
    raise Refused("ada", {"holder": holder})


@job(max_attempts=1, retry_on=OSError)
async def gives_up() -> None:
    raise refused()


@job(max_attempts=1, executor="process", decide=refuse)
def judged_in_a_process() -> None:
    raise refused()


FAILING = [
    fails(),
    fails_in_a_thread(),
    fails_in_a_process(),
    fails_in_a_group(),
    names_its_argument("hunter2"),
    gives_up(),
    judged_in_a_process(),
]


@job(max_attempts=1)
async def logs_it(ctx: Context) -> None:
    try:
        raise refused()
    except Refused as error:
        ctx.log.exception("refused")
        ctx.log.error("refused", exc_info=error)  # what is tested
        ctx.log.error("refused", exc_info=(type(error), error, error.__traceback__))  # what is tested
        ctx.log.error(error)  # what is tested
        ctx.log.error(Account("ada", "DE99"))  # what is tested


@job(max_attempts=1, log_context=refuse)
async def has_a_broken_context(ctx: Context) -> None:
    ctx.log.error("a line of ada [hidden]")


@job(max_attempts=1)
async def folds(ctx: Context) -> Result[int, int]:
    return ctx.result(1, append=refuse)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """All that is logged, as a formatter of the standard library and one of a user's own write it; and by a queue."""

    class Own(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            told = "" if record.exc_info is None else self.formatException(record.exc_info)
            return f"{record.getMessage()} {vars(record)!r} {told}"

    written, queue = io.StringIO(), SimpleQueue[Any]()
    handlers: list[logging.Handler] = [logging.StreamHandler(written) for _ in range(2)]
    handlers[0].setFormatter(logging.Formatter("%(name)s %(message)s"))
    handlers[1].setFormatter(Own())
    handlers.append(logging.handlers.QueueHandler(queue))
    logger = logging.getLogger("ropewalk")
    level, logger.level = logger.level, logging.INFO
    for handler in handlers:
        logger.addHandler(handler)
    yield written
    for handler in handlers:
        logger.removeHandler(handler)
    logger.setLevel(level)
    while not queue.empty():
        assert hides(handlers[0].format(queue.get()))


def hides(shown: object) -> bool:
    text = str(shown)
    return not any(secret in text for secret in SECRETS) and "ada" in text and "[hidden]" in text


@pytest.mark.parametrize("failing", FAILING, ids=lambda job: job.type.name)
async def test_a_failure_hides_them(make_app: MakeApp, log: io.StringIO, failing: Any) -> None:
    reported: list[str] = []
    app = make_app(
        *(each.type for each in FAILING), logs=LOGS, on_error=lambda error, phase: reported.append(f"{phase}: {error}")
    )
    async with app.running():
        handle = await app.enqueue(failing)
        info = await app.wait(handle.id, timeout=60)
        assert info.error is not None
        with pytest.raises(JobFailed) as caught:
            await handle.result()
        lines = await app.logs(handle.id)
    assert hides(info.error.message) and hides(info.error.traceback) and hides(caught.value)
    assert all(hides(each) for each in (*lines, *reported))
    assert not log.getvalue() or hides(log.getvalue())


async def test_a_line_with_an_exception_hides_them(make_app: MakeApp, log: io.StringIO) -> None:
    app = make_app(logs_it, logs=LOGS)
    async with app.running():
        handle = await app.enqueue(logs_it())
        await handle.result(timeout=10)
    lines = await app.logs(handle.id)
    assert len(lines) == 5 and all(hides(each) for each in lines)
    assert [str(line.fields.get("error", ""))[:8] for line in lines] == ["Refused:"] * 3 + [""] * 2
    written = log.getvalue()
    assert hides(written) and "in logs_it" in written and "test_secret_keys.Refused: ada, {'iban'" in written
    assert "LookupError: {'owner': 'ada', 'iban': '[hidden]'}" in written


async def test_a_line_keeps_an_exception_with_nothing_to_hide(
    caplog: pytest.LogCaptureFixture, make_app: MakeApp
) -> None:
    plain = ValueError("plain")

    @job
    async def logs_a_plain_one(ctx: Context) -> None:
        ctx.log.error("no", exc_info=plain)

    app = make_app(logs_a_plain_one, logs=LOGS)
    async with app.running():
        await app.enqueue(logs_a_plain_one()).result(timeout=10)
    [record] = [each for each in caplog.records if each.name == "ropewalk.job"]
    assert record.exc_info is not None and record.exc_info[1] is plain


async def test_a_context_that_cannot_be_told_hides_them(make_app: MakeApp, log: io.StringIO) -> None:
    app = make_app(has_a_broken_context, logs=LOGS)
    async with app.running():
        handle = await app.enqueue(has_a_broken_context())
        await handle.result(timeout=10)
    [line] = await app.logs(handle.id)
    assert hides(line) and hides(log.getvalue())


async def test_a_fold_that_raises_hides_them(make_app: MakeApp, log: io.StringIO) -> None:
    app = make_app(folds, logs=LOGS)
    async with app.running():
        handle = await app.enqueue(folds())
        await app.wait(handle.id, timeout=10)
        info = await app.group(handle.id)
    assert hides(info) and hides(log.getvalue())


async def test_what_is_reported_and_has_no_hook_hides_them(make_app: MakeApp, log: io.StringIO) -> None:
    app = make_app(fails, logs=LOGS, on_event=refuse)
    async with app.running():
        handle = await app.enqueue(fails())
        await app.wait(handle.id, timeout=10)
    assert hides(log.getvalue()) and "error in on_event: ada, {'iban'" in log.getvalue()


async def test_a_hook_that_raises_hides_them(make_app: MakeApp, log: io.StringIO) -> None:
    app = make_app(fails, logs=LOGS, on_event=refuse, on_error=refuse)
    async with app.running():
        handle = await app.enqueue(fails())
        await app.wait(handle.id, timeout=10)
    assert hides(log.getvalue()) and "on_error raised while reporting ada, {'iban'" in log.getvalue()


async def test_what_the_log_itself_raises_hides_them(make_app: MakeApp, capsys: pytest.CaptureFixture[str]) -> None:
    app = make_app(fails, logs=LOGS, on_event=refuse)
    logger = logging.getLogger("ropewalk")
    logger.addFilter(refuse)
    try:
        async with app.running():
            handle = await app.enqueue(fails())
            await app.wait(handle.id, timeout=10)
    finally:
        logger.removeFilter(refuse)
    assert hides(capsys.readouterr().err)


async def test_a_failure_from_outside_hides_them(make_app: MakeApp) -> None:
    app = make_app(fails, logs=LOGS)
    async with app:
        handle = await app.enqueue(fails(), delay=60)
        info = await app.fail(handle.id, refused())
    assert info.error is not None and hides(info.error)


@pytest.mark.parametrize("formatter", [JsonFormatter, TextFormatter])
def test_formatters_hide_them_whoever_formatted_the_record_before(formatter: Any) -> None:
    error = refused()
    record = logging.makeLogRecord(
        {"msg": error, "exc_info": (Refused, error, None), "account": Account("ada", "DE99"), "levelname": "ERROR"}
    )
    logging.Formatter().format(record)
    assert record.exc_text is not None and "DE99" in record.exc_text
    made = formatter(secret_keys=("iban",))
    assert hides(made.format(record))
    if formatter is TextFormatter:
        assert hides(TextFormatter("ada %(account)s", secret_keys=("iban",)).format(record))
    assert record.msg is error, "other handlers get the record as it is"


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_log_of_a_worker_hides_them(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    configured: list[logging.Handler] = []
    monkeypatch.setattr(logging, "basicConfig", lambda *, level, handlers: configured.extend(handlers))
    start_logging("info", form=form, secret_keys=("iban",))
    error = refused()
    record = logging.makeLogRecord({"msg": "of %s", "args": (error,), "exc_info": (Refused, error, None)})
    assert hides(configured[0].format(record))


def test_an_unexpected_exit_keeps_its_cause() -> None:
    """What a function of the user's raised is its cause, which is hidden in the traceback."""
    error = UnexpectedExit("it raised SystemExit")
    error.__cause__ = SystemExit(Account("ada", "DE99"))
    record = logging.makeLogRecord({"msg": "ada", "exc_info": (UnexpectedExit, error, None)})
    assert hides(TextFormatter(secret_keys=("iban",)).format(record))

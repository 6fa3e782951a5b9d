"""O8: log records as JSON lines."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from ropewalk.logging import JsonFormatter, TextFormatter


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    logger, stream = logging.getLogger("tests.json"), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter(secret_keys=["iban"]))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    yield logger, stream
    logger.removeHandler(handler)


def test_one_object_a_line(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = log
    logger.info(
        "half of %d\nand more", 10, extra={"job_id": "j", "iban": "DE", "nested": {"password": "p"}, "no": None}
    )
    [line] = stream.getvalue().splitlines()
    said = json.loads(line)
    assert said.pop("time").endswith("+00:00")
    assert said == {
        "level": "INFO",
        "logger": "tests.json",
        "message": "half of 10\nand more",
        "job_id": "j",
        "iban": "[hidden]",
        "nested": {"password": "[hidden]"},
    }


def test_errors_and_what_json_cannot_hold(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = log
    try:
        raise ValueError("no")
    except ValueError:
        logger.exception("failed", extra={"object": sys, "keys": {1: 2}})
    logger.info("half \ud800", stack_info=True)
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert "ValueError: no" in first["exception"] and "module 'sys'" in first["object"]
    assert "\\ud800" in second["message"] and second["stack"]


def test_a_line_for_people_names_the_job() -> None:
    formatter = TextFormatter("%(levelname)s %(message)s")

    def line(**fields: object) -> str:
        return formatter.format(logging.makeLogRecord({"levelname": "INFO", "msg": "half way", **fields}))

    job = {"job_id": "j-1", "job_type": "mail", "job_attempt": 2, "job_tenant": "default"}
    assert line() == "INFO half way"
    assert line(**job) == "INFO half way  [type=mail job=j-1 attempt=2]"
    assert line(**{**job, "job_tenant": "acme"}) == "INFO half way  [type=mail job=j-1 attempt=2 tenant=acme]"
    assert line(**job, exc_text="Traceback: no") == "INFO half way  [type=mail job=j-1 attempt=2]\nTraceback: no"


def test_a_process_with_a_name_and_a_traceback_that_is_text() -> None:
    record = logging.makeLogRecord({"msg": "failed", "processName": "worker-1", "exc_text": "Traceback: no"})
    said = json.loads(JsonFormatter().format(record))
    assert (said["process"], said["exception"]) == ("worker-1", "Traceback: no")

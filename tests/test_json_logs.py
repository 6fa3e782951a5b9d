"""O8: log records as JSON lines."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from ropewalk.logging import JsonFormatter


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

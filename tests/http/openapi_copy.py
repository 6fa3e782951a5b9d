"""The stored copy of the OpenAPI document, which shows reviewers every change of the HTTP API.

`python -m tests.http.openapi_copy` (or `make api`) writes openapi.json anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from ropewalk.http.openapi import document

WRITTEN: Final = Path(__file__).with_name("openapi.json")


def as_text() -> str:
    return json.dumps(without_version(document()), indent=1, ensure_ascii=False) + "\n"


def without_version(whole: dict[str, Any]) -> dict[str, Any]:
    """A release changes the version alone, which is no change of the API."""
    return {**whole, "info": {name: value for name, value in whole["info"].items() if name != "version"}}


if __name__ == "__main__":
    WRITTEN.write_text(as_text(), encoding="utf-8")

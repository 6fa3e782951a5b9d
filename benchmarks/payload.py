"""The input of every measured job: about a hundred bytes once encoded."""

from __future__ import annotations

from typing import Final

TEXT: Final = "a payload of a hundred bytes or so, as a small job usually carries around"

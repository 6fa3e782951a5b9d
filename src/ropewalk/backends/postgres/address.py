"""A URL as PostgreSQL's own library reads it, beside the options that are ours: `schema` and `notify`."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from msgspec import Struct

from ropewalk.errors import InvalidInput

DEFAULT_SCHEMA: Final = "ropewalk"
NAME_BYTES_MAX: Final = 63

_WRITABLE: Final = {"target_session_attrs": "read-write"}
_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]*")


class Address(Struct, frozen=True, kw_only=True):
    url: str
    """for the library; it may hold a password"""
    schema: str
    notify: bool
    shown: str
    """for messages and logs"""

    @classmethod
    def of(cls, url: str) -> Address:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True)
        ours = {name: value for name, value in options if name in ("schema", "notify")}
        # Of several hosts the one that takes writes, unless told otherwise: after a failover it is another one.
        theirs = _WRITABLE | {name: value for name, value in options if name not in ours}
        # The library knows both spellings of the scheme; a password has no business in a message.
        where = parts.netloc.rpartition("@")[2]
        return cls(
            url=urlunsplit(parts._replace(query=urlencode(theirs))),
            schema=_schema(ours.get("schema", DEFAULT_SCHEMA)),
            notify=_switch(ours.get("notify", "on")),
            shown=f"{parts.scheme}://{where}{parts.path}",
        )


def _schema(name: str) -> str:
    if not _PLAIN.fullmatch(name) or len(name) > NAME_BYTES_MAX or name.startswith("pg_"):
        raise InvalidInput(
            f"schema={name!r} cannot be used: lower-case letters, digits and underscores, at most {NAME_BYTES_MAX}, "
            "not beginning with a digit or pg_",
            field="schema",
        )
    return name


def _switch(word: str) -> bool:
    if word not in ("on", "off"):
        raise InvalidInput(f"notify={word!r} says nothing: use notify=on or notify=off", field="notify")
    return word == "on"

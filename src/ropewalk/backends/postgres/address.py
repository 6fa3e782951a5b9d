"""Reads the URL of a store: a URL of PostgreSQL's client library, with two options of ropewalk: `schema` and
`notify`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import psycopg
from msgspec import Struct
from psycopg.pq import Conninfo

from ropewalk.errors import InvalidInput
from ropewalk.ports.store.urls import is_well_formed, masked

DEFAULT_SCHEMA: Final = "ropewalk"
NAME_BYTES_MAX: Final = 63
PORT_MAX: Final = 65535

_OURS: Final = ("schema", "notify")
_KNOWN: Final = frozenset(option.keyword.decode() for option in Conninfo.get_defaults()) | {"ssl"}
"""The options that the library knows. `ssl=true` is an older form of sslmode=require."""
_WRITABLE: Final = {"target_session_attrs": "read-write"}
_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]*")


class Address(Struct, frozen=True, kw_only=True):
    """Where a store is: a server, a database and a schema."""

    url: str
    """The URL for the library. It may contain a password."""
    schema: str
    notify: bool
    """Whether processes send one another hints."""
    shown: str
    """The URL for messages and logs, without the password and the options."""

    @classmethod
    def of(cls, url: str) -> Address:
        shown = masked(url).partition("?")[0]
        if not is_well_formed(url):
            raise _unreadable(shown)
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True)
        ours = {name: value for name, value in options if name in _OURS}
        # Of several hosts, the one that accepts writes is used, unless the URL says otherwise: a failover changes it.
        theirs = _WRITABLE | {name: value for name, value in options if name not in ours}
        # urlunsplit would omit the slashes of a URL without a host (a Unix socket), which the library needs.
        read = f"{parts.scheme}://{parts.netloc}{parts.path}?{urlencode(theirs)}"
        _check(read, theirs, shown)
        return cls(
            url=read,
            schema=_schema(ours.get("schema", DEFAULT_SCHEMA)),
            notify=_switch(ours.get("notify", "on")),
            shown=shown,
        )


def _check(url: str, names: Iterable[str], shown: str) -> None:
    """Refuses what the library would refuse later, because its message might contain a password."""
    for name in names:
        if name not in _KNOWN:
            if not _PLAIN.fullmatch(name):
                raise _unreadable(shown)
            close = get_close_matches(name, [*_OURS, *sorted(_KNOWN)], n=1)
            meant = f"did you mean {close[0]!r}?" if close else "take it away."
            raise InvalidInput(
                f"url={shown!r} has the parameter {name!r}, which means nothing here: {meant} There are schema and "
                "notify, and those of PostgreSQL's client library (sslmode, connect_timeout, application_name, ...)",
                field="url",
            )
    options = _parsed(url)
    if options is None:
        raise _unreadable(shown)
    for name in ("port", "connect_timeout"):
        for value in filter(None, options[name].split(",")):
            if not value.isascii() or not value.removeprefix("-").isdigit() or int(value) > PORT_MAX:
                raise InvalidInput(f"url={shown!r}: {name}={value!r} is no number up to {PORT_MAX}", field="url")


def _parsed(url: str) -> dict[str, str] | None:
    """Returns the options of the URL; None if the library cannot read it. The error of the library is not shown,
    because it may quote the password."""
    try:
        return {each.keyword.decode(): (each.val or b"").decode() for each in Conninfo.parse(url.encode())}
    except psycopg.Error:
        return None


def _unreadable(shown: str) -> InvalidInput:
    return InvalidInput(
        f"url={shown!r} cannot be read: write postgresql://user:password@host:5432/database, and characters like "
        "% @ : / ? # in the user or the password as %25 %40 %3A %2F %3F %23",
        field="url",
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

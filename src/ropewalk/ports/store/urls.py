"""URLs of stores: the function with which a backend opens them, and how messages show them without passwords."""

from __future__ import annotations

import re
from typing import Final, Protocol
from urllib.parse import urlsplit

from ropewalk.errors import InvalidInput
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Store

_HOST: Final = r"(?:\[[\w:.%]*\]|[\w.%-]*)(?::\d*)?"
_WELL_FORMED: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?:(?P<user>[^:@/?#]*)(?P<password>:[^@/?#]*)?@)?"
    rf"(?P<place>{_HOST}(?:,{_HOST})*(?:/[^?#@]*)?)(?:\?(?P<query>[^#@]*))?",
    re.IGNORECASE,
)
"""A URL in which the place of the password is certain. A password with an unescaped @, /, ? or # does not match."""
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_OF_A_FILE: Final = re.compile(r"sqlite:///[^?#]*", re.IGNORECASE)
_PATH: Final = re.compile(r"[\w./\\-]*")
"""A text without a colon and an @ contains no password: somebody forgot the scheme before the name of a file."""
_SECRET_PARAMETER: Final = re.compile(r"pass|secret|token|key", re.IGNORECASE)


class FromUrl(Protocol):
    """The function of a backend that makes a store from a URL. An entry point of the group `ropewalk.backends` names
    it."""

    def __call__(self, url: str, runtime: Runtime, *, allow_weaker_durability: bool, migrate: bool) -> Store:
        """Returns the store of a URL without opening it and without I/O. Raises InvalidInput if the URL does not fit.

        With `allow_weaker_durability` the store accepts settings under which acknowledged work could be lost. With
        `migrate` it may create or change its schema when it is opened.
        """
        ...


def masked(url: str) -> str:
    """Returns the URL for messages and logs, with everything hidden that is a password or may be one.

    If the URL is not well-formed, only the scheme is shown, because any other part may belong to the password. A user
    without a password is hidden, because it may be a token, unless the store is PostgreSQL.
    """
    if _OF_A_FILE.fullmatch(url) or _PATH.fullmatch(url):
        return url
    parts = _WELL_FORMED.fullmatch(url)
    if parts is None:
        scheme = _SCHEME.match(url)
        return f"{'' if scheme is None else scheme[0]}***"
    user, password, query = parts["user"], parts["password"] or "", parts["query"]
    has_password = len(password) > 1
    shown_user = user if has_password or parts["scheme"].lower().startswith("postgres") else "***"
    who = "" if user is None else f"{shown_user}{':***' if has_password else ''}@"
    parameters = "" if query is None else f"?{'&'.join(_shown_parameter(each) for each in query.split('&'))}"
    return f"{parts['scheme']}://{who}{parts['place']}{parameters}"


def is_well_formed(url: str) -> bool:
    """Whether it is certain where the password of this URL begins and ends, and Python can take the URL apart."""
    try:
        urlsplit(url)
    except ValueError:
        return False
    return _WELL_FORMED.fullmatch(url) is not None


def _shown_parameter(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    if not equals:
        return "***" if parameter else ""
    return f"{name}=***" if _SECRET_PARAMETER.search(name) else parameter


def refuse_extras(url: str, extras: str) -> None:
    """Raises InvalidInput if a URL has parts that its store would ignore."""
    if extras:
        raise InvalidInput(f"url={masked(url)!r} has a query or a fragment, which means nothing here", field="url")

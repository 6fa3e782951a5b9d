"""How a store is reached by its URL: what a backend's package offers, and what its URLs have in common."""

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
"""A URL of which it is certain where its password stands. A password with an unescaped @ / ? or # makes it another."""
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_OF_A_FILE: Final = re.compile(r"sqlite:///[^?#]*", re.IGNORECASE)
_PATH: Final = re.compile(r"[\w./\\-]*")
"""Without a colon or an @ no part of it is a password; somebody forgot the scheme before the name of a file."""
_SECRET_PARAMETER: Final = re.compile(r"pass|secret|token|key", re.IGNORECASE)


class FromUrl(Protocol):
    """The `from_url` of a backend's package, which an entry point of the group `ropewalk.backends` names."""

    def __call__(self, url: str, runtime: Runtime, *, allow_weaker_durability: bool, migrate: bool) -> Store:
        """The store behind a URL, not opened yet: no I/O here. Raises InvalidInput for a URL that does not fit.

        `allow_weaker_durability`: accept settings under which acknowledged work could be lost. `migrate`: opening the
        store may create or change its schema.
        """
        ...


def masked(url: str) -> str:
    """The URL with everything hidden that is a password or may be one: fit for messages and logs.

    Of a URL that is not well-formed only the scheme is shown, because any part of it may belong to the password. A user
    without a password may be a token, except where the store is PostgreSQL.
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
    """Raises InvalidInput where a URL has parts that its store would not look at."""
    if extras:
        raise InvalidInput(f"url={masked(url)!r} has a query or a fragment, which means nothing here", field="url")

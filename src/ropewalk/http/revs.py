"""ETag and If-Match: what a client has read, so that it changes nothing else."""

from __future__ import annotations

import re
from typing import Any, Final

from ropewalk.http.call import Call
from ropewalk.http.errors import DetailCode, invalid

_ETAG: Final = re.compile(r'\s*"(\d{1,18})"\s*')


def etag(rev: int) -> dict[str, str]:
    """The header that tells the rev of what is answered."""
    return {"ETag": f'"{rev}"'}


def expected_rev(call: Call[Any, Any]) -> int | None:
    """The rev that the client has read, by its If-Match. None if it changes whatever is there."""
    given = call.request.headers.get("if-match")
    if given is None or given.strip() == "*":
        return None
    found = _ETAG.fullmatch(given)
    if found is None or int(found[1]) < 1:
        told = f'If-Match is {given[:40]!r}, and not an ETag of this API, such as "7"'
        raise invalid(told, field="If-Match", code=DetailCode.WRONG_TYPE)
    return int(found[1])

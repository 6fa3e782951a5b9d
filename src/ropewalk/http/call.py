"""One request that has been read, authenticated and checked: what the handler of a route is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from msgspec import Struct

from ropewalk.client.store_client import StoreClient
from ropewalk.http.identity.identity import Identity
from ropewalk.http.request import Request
from ropewalk.http.service import Service
from ropewalk.ports.store.core import Store

B = TypeVar("B")
Q = TypeVar("Q")


class NoQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """No query parameters."""


@dataclass(frozen=True, slots=True)
class Call(Generic[B, Q]):
    """A call of a route. `B` is the shape of the body, or None, and `Q` the shape of the query parameters."""

    request: Request
    service: Service
    identity: Identity
    tenant: str
    """The tenant that the call is about."""
    params: Mapping[str, str]
    """The parts of the path that the route names."""
    body: B
    query: Q

    @property
    def client(self) -> StoreClient:
        return self.service.client(self.tenant)

    @property
    def store(self) -> Store:
        return self.service.store

    @property
    def id(self) -> str:
        """The part of the path that says which one: `{id}`."""
        return self.params["id"]

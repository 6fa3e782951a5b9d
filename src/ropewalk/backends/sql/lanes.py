"""What one connection knows of lanes: their numbers, and the limits and quotas there are.

A lane is one (tenant, queue, type, limit key); its row is written once and never changes. The lanes of all keys of one
(tenant, queue, type), which may be very many, are numbered together and behind all lanes without a key: a claim passes
over all of them in one step, or looks at some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ropewalk.backends.sql.damage import Rows
from ropewalk.backends.sql.tx import Tx
from ropewalk.domain.limits.fleet_limit import FlowLimit, LaneName, LimitKind, Rules
from ropewalk.domain.limits.quota import Quota, Quotas
from ropewalk.domain.limits.rate import Algorithm, Rate
from ropewalk.domain.time import SECOND, Span

KEYS_MAX: Final = 1 << 40
"""the lanes of keys below lane n are numbered from n * KEYS_MAX on, and their sublanes twice that"""
KNOWN_MAX: Final = 50_000

_lanes = Rows("lane", tuple[int, str, str, str, str])
_limits = Rows("fleet_limit", tuple[str, LimitKind, str, int | None, int | None, Span | None, Algorithm | None, int])
_quotas = Rows("quota", tuple[str, int | None, int | None, int | None, Span | None, Algorithm | None, int | None])


class QuotaBook:
    """The quotas there are. Many may share one that only read what is committed."""

    def __init__(self) -> None:
        self._known: tuple[int | None, Quotas] = (None, Quotas())
        """and the `control` they were read under"""

    @property
    def known(self) -> Quotas:
        """As they were when somebody last looked."""
        return self._known[1]

    def look(self, tx: Tx, control: int) -> Quotas:
        """As of this `control`, which counts up whenever one changes."""
        if control != self._known[0]:
            self._known = (control, quotas_of(tx))
        return self._known[1]

    def free(self, tenants: Iterable[str]) -> int | None:
        """The `control` under which none of these tenants had a quota; None where one had, or nobody looked."""
        control, quotas = self._known
        return None if quotas.holding(tenants) else control

    def forget(self) -> None:
        """Look again, whatever `control` says."""
        self._known = (None, self.known)


class LaneBook:
    """Belongs to one connection. `forget` after a rollback: what it knows may never have been written."""

    def __init__(self, quotas: QuotaBook | None = None) -> None:
        self.quotas = QuotaBook() if quotas is None else quotas
        self._ids: dict[LaneName, int] = {}
        self._names: dict[int, LaneName] = {}
        self._rules = Rules()
        self._rules_of: int | None = None
        """the `control` they were read under"""

    def id_of(self, tx: Tx, name: LaneName) -> int:
        known = self._ids.get(name)
        return self.ids_of(tx, [name])[name] if known is None else known

    def ids_of(self, tx: Tx, names: Iterable[LaneName]) -> dict[LaneName, int]:
        """Their numbers, among others; those that are new are written."""
        unknown = sorted({name for name in names if name not in self._ids})
        if unknown:
            if len(self._ids) > KNOWN_MAX:
                self._ids.clear()
                unknown = sorted(set(names))
            self.ids_of(tx, {name.above for name in unknown if name.key})
            tx.run_rows(tx.sql.insert_lanes, unknown)  # in order: two who write the same never wait for each other
            wanted = msgspec.json.encode(unknown).decode()
            for number, *name in _lanes.decode(tx, tx.value(tx.sql.lane_ids, (wanted,))):
                self._ids[LaneName(*name)] = number
        return self._ids

    def names_of(self, tx: Tx, lanes: Iterable[int]) -> dict[int, LaneName]:
        """Their names, among others. A lane whose row cannot be read has none."""
        unknown = [lane for lane in lanes if lane not in self._names]
        if unknown:
            if len(self._names) > KNOWN_MAX:
                self._names.clear()
                self._ids.clear()
                unknown = list(lanes)
            wanted = msgspec.json.encode(unknown).decode()
            for number, *name in _lanes.decode(tx, tx.value(tx.sql.lane_names, (wanted,))):
                self._names[number] = LaneName(*name)
                self._ids[self._names[number]] = number
        return self._names

    @property
    def known_names(self) -> Mapping[int, LaneName]:
        """Those of lanes that were asked for, for whoever cannot ask."""
        return self._names

    def rules(self, tx: Tx, control: int) -> Rules:
        """The limits as of this `control`, which counts up whenever one changes."""
        if control != self._rules_of:
            self._rules = Rules(limits_in(tx, tx.value(tx.sql.all_limits)))
            self._rules_of = control
        return self._rules

    def forget(self) -> None:
        self._ids.clear()
        self._names.clear()
        self._rules_of = None
        self.quotas.forget()


def limits_in(tx: Tx, found: bytes | str) -> list[FlowLimit]:
    return [
        FlowLimit(
            tenant=tenant,
            kind=kind,
            name=name,
            concurrency=concurrency,
            rate=_rate(count, window_us, algorithm),
            declared=bool(declared),
        )
        for tenant, kind, name, concurrency, count, window_us, algorithm, declared in _limits.decode(tx, found)
    ]


def quotas_of(tx: Tx) -> Quotas:
    return Quotas(
        Quota(
            tenant=tenant,
            pending=pending,
            running=running,
            submissions=_rate(count, window_us, algorithm),
            payload_bytes=payload_bytes,
        )
        for tenant, pending, running, count, window_us, algorithm, payload_bytes in sorted(
            _quotas.decode(tx, tx.value(tx.sql.all_quotas))
        )
    )


def _rate(count: int | None, window_us: Span | None, algorithm: Algorithm | None) -> Rate | None:
    if count is None or window_us is None or algorithm is None:
        return None
    return Rate(count, per=window_us / SECOND, algorithm=algorithm)

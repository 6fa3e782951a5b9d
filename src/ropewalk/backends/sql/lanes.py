"""What one connection remembers about lanes: their numbers, and the limits and quotas of the store.

A lane is one (tenant, queue, type, limit key); its row is written once and never changes. The lanes of all limit keys
of one (tenant, queue, type), which may be very many, have numbers beside one another and behind all lanes without a
key: a claim skips all of them in one step, or looks at some.

The control counter of the store grows whenever a limit or a quota changes or a queue is paused. What was read at one
value of the counter is valid as long as the counter has this value. It is in the only row of table meta, beside the
last seq and the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

import msgspec

from ropewalk.backends.sql.damage import Rows
from ropewalk.backends.sql.tx import Tx
from ropewalk.domain.limits.fleet_limit import FlowLimit, LaneName, LimitKind, LimitRules
from ropewalk.domain.limits.quota import Quota, Quotas
from ropewalk.domain.limits.rate import Algorithm, Rate
from ropewalk.domain.time import SECOND, Span
from ropewalk.errors import StoreRefused

KEYS_MAX: Final = 1 << 40
"""The lanes of the limit keys of lane n have numbers from n * KEYS_MAX on, and their sublanes from twice that on."""
KNOWN_MAX: Final = 50_000
"""A book that knows more lanes forgets all of them."""

_lanes = Rows("lane", tuple[int, str, str, str, str])
_limits = Rows("fleet_limit", tuple[str, LimitKind, str, int | None, int | None, Span | None, Algorithm | None, int])
_quotas = Rows("quota", tuple[str, int | None, int | None, int | None, Span | None, Algorithm | None, int | None])


class QuotaBook:
    """The quotas of the store, as last read. Connections that read only what is committed may share one book."""

    def __init__(self) -> None:
        self._known: tuple[int | None, Quotas] = (None, Quotas())
        """The value of the control counter at which the quotas were read, and the quotas."""

    @property
    def known(self) -> Quotas:
        """The quotas as they were when they were last read."""
        return self._known[1]

    def at(self, tx: Tx, control: int) -> Quotas:
        """Returns the quotas at this value of the control counter. They are read only if the counter has changed."""
        if control != self._known[0]:
            self._known = (control, quotas_of(tx))
        return self._known[1]

    def control_without(self, tenants: Iterable[str]) -> int | None:
        """Returns the value of the control counter at which none of these tenants had a quota; None if one of them had,
        or if the quotas have not been read."""
        control, quotas = self._known
        return None if quotas.for_tenants(tenants) else control

    def forget(self) -> None:
        """Has the next call read the quotas again, whatever the control counter is."""
        self._known = (None, self.known)


class LaneBook:
    """The numbers and names of lanes, as one connection knows them. It must `forget` them after a rollback, because new
    lanes may not have been written then."""

    def __init__(self, quotas: QuotaBook | None = None) -> None:
        self.quotas = QuotaBook() if quotas is None else quotas
        self._ids: dict[LaneName, int] = {}
        self._names: dict[int, LaneName] = {}
        self._rules = LimitRules()
        self._rules_of: int | None = None
        """The value of the control counter at which the limits were read."""

    def id_of(self, tx: Tx, name: LaneName) -> int:
        """Returns the number of a lane, which is written if it is new."""
        known = self._ids.get(name)
        return self.ids_of(tx, [name])[name] if known is None else known

    def ids_of(self, tx: Tx, names: Iterable[LaneName]) -> dict[LaneName, int]:
        """Returns the numbers of these lanes, and perhaps of others. New lanes are written."""
        unknown = sorted({name for name in names if name not in self._ids})
        if unknown:
            if len(self._ids) > KNOWN_MAX:
                self._ids.clear()
                unknown = sorted(set(names))
            self.ids_of(tx, {name.above for name in unknown if name.key})
            tx.run_rows(tx.sql.insert_lanes, unknown)  # They are sorted, so that two writers cannot deadlock.
            wanted = msgspec.json.encode(unknown).decode()
            for number, *name in _lanes.decode(tx, tx.value(tx.sql.lane_ids, (wanted,))):
                self._ids[LaneName(*name)] = number
        return self._ids

    def names_of(self, tx: Tx, lanes: Iterable[int]) -> dict[int, LaneName]:
        """Returns the names of these lanes, and perhaps of others. A lane whose row cannot be read has no name."""
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
        """The names that are known without reading, for callers that cannot read."""
        return self._names

    def rules(self, tx: Tx, control: int) -> LimitRules:
        """Returns the limits at this value of the control counter, and reads them if it has changed."""
        if control != self._rules_of:
            self._rules = LimitRules(limits_in(tx, tx.value(tx.sql.all_limits)))
            self._rules_of = control
        return self._rules

    def forget(self) -> None:
        """Forgets everything, so that it is read again."""
        self._ids.clear()
        self._names.clear()
        self._rules_of = None
        self.quotas.forget()


def limits_in(tx: Tx, found: bytes | str) -> list[FlowLimit]:
    """Decodes fleet limits from the answer of a statement."""
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
    """Reads all quotas."""
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


def epoch_and_control(tx: Tx) -> tuple[int, int]:
    """Reads the epoch and the control counter."""
    found = tx.row(tx.sql.epoch)
    assert found is not None
    epoch, control = found
    check_numbers(epoch, control)
    return epoch, control


def check_numbers(epoch: object, control: object) -> None:
    """Raises StoreRefused if one of these columns does not contain a number; SQLite lets anybody write anything."""
    if type(epoch) is not int:
        refuse_damaged("epoch")
    if type(control) is not int:
        refuse_damaged("control")


def refuse_damaged(column: str) -> NoReturn:
    """Raises StoreRefused because this column of table meta cannot be read."""
    raise StoreRefused(
        f"the only row of table meta cannot be read: {column} is no integer, so no job can be enqueued or claimed; "
        "repair that column (last_seq: the largest seq in table job, at least; epoch and control: more than they were)"
    )

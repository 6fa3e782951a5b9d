"""Lane numbers, remembered. A lane is one (tenant, queue, type); its row is written once and never changes."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from ropewalk.backends._sql.tx import Tx

LaneName: TypeAlias = tuple[str, str, str]
"""(tenant, queue, type)"""

_lanes = msgspec.json.Decoder(list[tuple[int, str, str, str]])


class LaneBook:
    """Belongs to one connection. `forget` after a rollback: a number may never have been written."""

    def __init__(self) -> None:
        self._ids: dict[LaneName, int] = {}
        self._names: dict[int, LaneName] = {}

    def id_of(self, tx: Tx, tenant: str, queue: str, job_type: str) -> int:
        name = (tenant, queue, job_type)
        known = self._ids.get(name)
        if known is None:
            tx.run(tx.sql.insert_lane, name)
            known = self._ids[name] = tx.value(tx.sql.lane_id, name)
        return known

    def name_of(self, tx: Tx, lane: int) -> LaneName:
        if lane not in self._names:
            self._names = {
                number: (tenant, queue, job_type)
                for number, tenant, queue, job_type in _lanes.decode(tx.value(tx.sql.all_lanes))
            }
        return self._names[lane]

    def forget(self) -> None:
        self._ids.clear()
        self._names.clear()

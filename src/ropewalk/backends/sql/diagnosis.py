"""How the jobs of all tenants stand, for an examination. It costs as much as there is ready, or dead."""

from __future__ import annotations

import msgspec

from ropewalk.backends.sql.queries import backlog
from ropewalk.backends.sql.tx import Tx
from ropewalk.domain.jobs.record import RECORD_FORMAT
from ropewalk.ports.store.diagnosis import Work

_lines = msgspec.json.Decoder(list[tuple[str, str]])
_counts = msgspec.json.Decoder(dict[str, int])


def work(tx: Tx) -> Work:
    over = tx.row(tx.sql.leases_over, (tx.now,))
    assert over is not None
    return Work(
        backlog=backlog(tx),
        paused=sorted(_lines.decode(tx.value(tx.sql.all_paused))),
        leases_over=over[0],
        oldest_lease_over_at=over[1],
        newer_records=tx.value(tx.sql.newer_records, (RECORD_FORMAT,)),
        dead_letters=_counts.decode(tx.value(tx.sql.dead_letters)),
    )

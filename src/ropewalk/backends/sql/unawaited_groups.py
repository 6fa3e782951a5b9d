"""Groups that closed with nobody waiting, told from the outbox until somebody says that it was told."""

from __future__ import annotations

import msgspec

from ropewalk.backends.sql.tx import Tx
from ropewalk.domain.time import Span
from ropewalk.domain.workflow.scope import Scope
from ropewalk.ports.store.messages import Orphan

_payloads = msgspec.json.Decoder(list[Orphan])


def put_orphan(tx: Tx, scope: Scope) -> None:
    assert scope.closed_at is not None, f"group {scope.group_id} is open"
    told_as = f"{scope.tenant}/{scope.group_id}/{scope.generation}"
    orphan = Orphan(id=told_as, tenant=scope.tenant, group_id=scope.group_id, closed_at=scope.closed_at)
    tx.run(tx.sql.put_orphan, (orphan.id, tx.now, tx.now, msgspec.json.encode(orphan).decode()))


def take_orphans(tx: Tx, limit: int, hide_us: Span) -> list[Orphan]:
    orphans = _payloads.decode(tx.value(tx.sql.due_orphans, (tx.now, limit)))
    if orphans:
        ids = msgspec.json.encode([orphan.id for orphan in orphans]).decode()
        tx.run(tx.sql.hide_orphans, (tx.now + hide_us, ids))
    return orphans


def orphan_told(tx: Tx, orphan_id: str) -> None:
    tx.run(tx.sql.delete_orphan, (orphan_id,))

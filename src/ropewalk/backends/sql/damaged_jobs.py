"""Reads job rows column by column after one row of a batch could not be decoded (damage.py explains when)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import NODEFAULT, structs

from ropewalk.backends.sql.columns import COLUMNS, JSON
from ropewalk.backends.sql.damage import DamagedJobs
from ropewalk.domain.jobs.flags import contradicted_flags, flags_of_columns
from ropewalk.domain.jobs.record import RECORD_FORMAT, JobRecord
from ropewalk.domain.jobs.states import TERMINAL, Move, Status
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.time import StoredSmall

if TYPE_CHECKING:
    from ropewalk.backends.sql.tx import Tx

_STORED: Final = tuple(field for field in structs.fields(JobRecord) if field.name in COLUMNS)
_PLACE_OF_FLAGS: Final = next(at for at, field in enumerate(_STORED) if field.name == "flags")
_OF_LANE: Final = ("tenant", "queue", "type", "limit_key")
_TIMES: Final = frozenset({"time_key", "created_at", "run_at", "updated_at"})
_STATUS_IN: Final = (Status.WAITING, Status.WAITING, Status.RUNNING, Status.DEAD_LETTER)
"""The status for each stage that stands in for a status that is junk."""
_STATUSES_IN: Final = (*(frozenset({status}) for status in _STATUS_IN[:-1]), TERMINAL)
"""The statuses that a job in each stage may have; any other one contradicts the stage."""
_STAGES: Final = range(len(_STATUS_IN))


def read_one_by_one(tx: Tx, seqs: Sequence[int]) -> list[JobRecord]:
    """Returns these jobs as far as their rows can be read. Raises DamagedJobs for waiting jobs with damaged rows."""
    jobs = [_read(tx, seq) for seq in seqs]
    known = tx.known_damage
    if known is not None:
        unknown = {job.seq for job in jobs if job.damaged and job.status is Status.WAITING and job.seq not in known}
        if unknown:
            raise DamagedJobs(frozenset(unknown))
    return jobs


def _read(tx: Tx, seq: int) -> JobRecord:
    """Reads one job. The statement returns every value with a mark that says whether it is text; text is returned as
    bytes, because it may not be valid UTF-8."""
    columns = ", ".join(tx.sql.one_column.format(column=field.name) for field in _STORED)
    found = tx.row(tx.sql.one_job.format(columns=columns), (seq,))
    assert found is not None, f"job {seq} is there"
    stage, lane, *pairs = found
    damaged: list[str] = [] if stage in _STAGES else ["stage"]
    read: dict[str, Any] = {}
    for field, value, is_text in zip(_STORED, pairs[::2], pairs[1::2], strict=True):
        try:
            read[field.name] = _decoded(field, value, is_text=bool(is_text))
        except (msgspec.DecodeError, UnicodeDecodeError):
            damaged.append(field.name)
            read[field.name] = _stand_in(tx, field, value, stage)
    job = JobRecord(**read)
    if "flags" in damaged and job.format > RECORD_FORMAT:
        _keep_newer_flags(job, found[2 + 2 * _PLACE_OF_FLAGS], damaged)
    if "status" not in damaged and stage in _STAGES and job.status not in _STATUSES_IN[stage]:
        damaged.append("status")
        job.status = _STATUS_IN[stage]
    job.damaged = (*damaged, *_put_right(job, damaged, _lane_of(tx, lane)))
    return job


def _keep_newer_flags(job: JobRecord, stored: Any, damaged: list[str]) -> None:
    """Keeps flags of a newer release in the record: they are no damage, and must still be there when it is saved."""
    try:
        job.flags = msgspec.convert(stored, StoredSmall)
    except msgspec.ValidationError:
        return
    damaged.remove("flags")


def _lane_of(tx: Tx, lane: int | None) -> LaneName | None:
    return None if lane is None else tx.lanes.names_of(tx, [lane]).get(lane)


def _put_right(job: JobRecord, damaged: list[str], lane: LaneName | None) -> list[str]:
    """Corrects the values that can be read but contradict others, and returns the names of their columns."""
    found: list[str] = []
    if lane is None:
        found.append("lane")
    else:
        found += [
            name
            for name, stored, of_lane in zip(_OF_LANE, job.lane, lane, strict=True)
            if stored != of_lane and name not in damaged
        ]
        if "type" in found or "type" in damaged:
            job.type = lane.type
        if "queue" in found or "queue" in damaged:
            job.queue = lane.queue
    if job.chain_index and job.scope_id is None and "scope_id" not in damaged:  # only a first member has no scope
        job.chain_index = None
        found.append("chain_index")
    if "flags" in damaged:
        job.flags = flags_of_columns(job)
    elif contradicted := contradicted_flags(job, damaged):
        job.flags &= ~contradicted
        found.append("flags")
    return found


def _decoded(field: structs.FieldInfo, value: Any, *, is_text: bool) -> Any:
    if is_text and isinstance(value, bytes):
        value = value.decode()
    if value is None and field.default_factory is not NODEFAULT:
        return field.default_factory()
    if field.name not in JSON or value is None or not isinstance(value, str):
        return msgspec.convert(value, field.type)
    return msgspec.json.decode(value, type=field.type)


def _stand_in(tx: Tx, field: structs.FieldInfo, value: Any, stage: int) -> Any:
    """Returns the value that the record gets in place of junk."""
    if field.name == "status":
        return _STATUS_IN[stage] if stage in _STAGES else Status.WAITING
    if field.name in _TIMES:
        return tx.now
    if field.default is not NODEFAULT:
        return field.default
    if field.default_factory is not NODEFAULT:
        return field.default_factory()
    if field.type is str:
        return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    if field.type is bytes:
        return b""
    return Move.SUBMIT if field.name == "last_move" else 0

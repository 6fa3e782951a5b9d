"""Every family of examples, put together."""

from __future__ import annotations

from ropewalk.testing.contract.buffer import BufferContract
from ropewalk.testing.contract.cancel import CancelContract
from ropewalk.testing.contract.claim import ClaimContract
from ropewalk.testing.contract.claims_in_a_row import ClaimsInARowContract, SettlementsInARowContract
from ropewalk.testing.contract.clock_set_back import ClockSetBackContract
from ropewalk.testing.contract.compensation import CompensationContract
from ropewalk.testing.contract.counted_lives import CountedLivesContract
from ropewalk.testing.contract.declared import DeclarationContract
from ropewalk.testing.contract.examine import ExamineContract
from ropewalk.testing.contract.fairness import AgeingContract, TurnContract
from ropewalk.testing.contract.fence import FenceContract
from ropewalk.testing.contract.history import HistoryContract, RandomLifeContract
from ropewalk.testing.contract.keys import KeyContract, KeyRetryContract, KeyUpdateContract
from ropewalk.testing.contract.leases import NoteContract, RenewContract
from ropewalk.testing.contract.limits import (
    ConcurrencyContract,
    DeclaredLimitContract,
    LimitChangeContract,
    PlaceContract,
)
from ropewalk.testing.contract.logs import BacklogContract, LogContract
from ropewalk.testing.contract.lost_answers import LostAnswerContract
from ropewalk.testing.contract.manual_retry import ManualRetryContract
from ropewalk.testing.contract.moves import MovesContract
from ropewalk.testing.contract.notify import FarHintContract, NotifierContract
from ropewalk.testing.contract.operate import DeleteContract, PauseContract, UpdateContract
from ropewalk.testing.contract.order import DueContract, OrderContract
from ropewalk.testing.contract.purge import PurgeContract
from ropewalk.testing.contract.quota_changes import QuotaChangeContract
from ropewalk.testing.contract.quota_kinds import RunningQuotaContract, SubmissionQuotaContract
from ropewalk.testing.contract.quotas import InsideQuotaContract, PendingQuotaContract
from ropewalk.testing.contract.races import RaceContract, ThreadContract
from ropewalk.testing.contract.rates import RateContract
from ropewalk.testing.contract.reading import AheadContract, GetContract, QueuesContract, WorkersContract
from ropewalk.testing.contract.recovery import DeadlineContract, ReclaimContract
from ropewalk.testing.contract.repeating import RepeatContract, RepeatedOnceContract, RepeatedSignalContract
from ropewalk.testing.contract.room import PassingContract, RoomContract
from ropewalk.testing.contract.schedule_fires import FireContract, MissedFireContract, SummerTimeContract
from ropewalk.testing.contract.schedules import ScheduleContract, ScheduleReadingContract
from ropewalk.testing.contract.search import SearchContract
from ropewalk.testing.contract.settle import LastWordContract, SettleBatchContract, SettleContract
from ropewalk.testing.contract.skip_queue import SkipQueueContract
from ropewalk.testing.contract.spawn import SpawnContract
from ropewalk.testing.contract.stale import StaleContract
from ropewalk.testing.contract.stats import (
    FlowContract,
    FoldContract,
    StandingContract,
    TellingApartContract,
    TenantsWithContract,
)
from ropewalk.testing.contract.submit import SubmitContract
from ropewalk.testing.contract.sweep import DeadlineSweepContract, SweepContract
from ropewalk.testing.contract.tenants import TenantContract
from ropewalk.testing.contract.upkeep import (
    OnceContract,
    PruneContract,
    PruneKeysContract,
    SilentWorkersContract,
)
from ropewalk.testing.contract.workflow import WorkflowContract


class StoreContract(
    # what it declares
    DeclarationContract,
    # coming in
    SubmitContract,
    KeyContract,
    KeyRetryContract,
    KeyUpdateContract,
    SkipQueueContract,
    SpawnContract,
    # being given out
    ClaimContract,
    ClaimsInARowContract,
    SettlementsInARowContract,
    OrderContract,
    TurnContract,
    AgeingContract,
    DueContract,
    BufferContract,
    RoomContract,
    PassingContract,
    DeadlineContract,
    ReclaimContract,
    # not too many at once, nor too often
    ConcurrencyContract,
    PlaceContract,
    RateContract,
    DeclaredLimitContract,
    LimitChangeContract,
    # not too much of one tenant
    PendingQuotaContract,
    InsideQuotaContract,
    RunningQuotaContract,
    SubmissionQuotaContract,
    QuotaChangeContract,
    # being held and lost
    RenewContract,
    NoteContract,
    LogContract,
    SweepContract,
    DeadlineSweepContract,
    LostAnswerContract,
    # under a clock that was wrong
    ClockSetBackContract,
    # ending
    SettleContract,
    SettleBatchContract,
    LastWordContract,
    StaleContract,
    FenceContract,
    CompensationContract,
    # being changed by people
    CancelContract,
    ManualRetryContract,
    UpdateContract,
    DeleteContract,
    PurgeContract,
    PauseContract,
    # being told again what nobody heard the answer to
    RepeatContract,
    RepeatedSignalContract,
    RepeatedOnceContract,
    # being looked at
    GetContract,
    SearchContract,
    QueuesContract,
    BacklogContract,
    AheadContract,
    WorkersContract,
    ExamineContract,
    NotifierContract,
    FarHintContract,
    # being counted
    FlowContract,
    TellingApartContract,
    StandingContract,
    TenantsWithContract,
    FoldContract,
    CountedLivesContract,
    # being forgotten
    PruneContract,
    PruneKeysContract,
    OnceContract,
    SilentWorkersContract,
    # belonging together
    WorkflowContract,
    # coming by the clock
    ScheduleContract,
    ScheduleReadingContract,
    FireContract,
    MissedFireContract,
    SummerTimeContract,
    # and overall
    MovesContract,
    HistoryContract,
    RandomLifeContract,
    TenantContract,
    RaceContract,
    ThreadContract,
):
    """What a store must do, by example."""

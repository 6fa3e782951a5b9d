"""The list of all families of the contract suite."""

from __future__ import annotations

from ropewalk.testing.contract.buffer import BufferContract
from ropewalk.testing.contract.cancel import CancelContract
from ropewalk.testing.contract.cascades import CascadeContract, WorkflowRaceContract
from ropewalk.testing.contract.chains import ChainContract
from ropewalk.testing.contract.claim import ClaimContract
from ropewalk.testing.contract.claim_room import DeclinedJobContract, RoomContract
from ropewalk.testing.contract.claims_in_a_row import ClaimsInARowContract, SettlementsInARowContract
from ropewalk.testing.contract.clock_set_back import ClockSetBackContract
from ropewalk.testing.contract.compensation import CompensationContract
from ropewalk.testing.contract.declaration import DeclarationContract
from ropewalk.testing.contract.dependants import InUseContract, TenantGraphContract
from ropewalk.testing.contract.documents import DocumentContract, DocumentListContract
from ropewalk.testing.contract.documents_due import DocumentTakingContract
from ropewalk.testing.contract.dooming import DoomContract, GateTimeoutContract
from ropewalk.testing.contract.end_from_outside import EndingContract
from ropewalk.testing.contract.examine import ExamineContract
from ropewalk.testing.contract.fairness import AgeingContract, TurnContract
from ropewalk.testing.contract.fence import FenceContract
from ropewalk.testing.contract.gate_submission import GateRefusalContract, GraphContract, InsideGroupContract
from ropewalk.testing.contract.gates import GateContract
from ropewalk.testing.contract.group_cancels_and_orphans import CancelGroupContract, OrphanContract
from ropewalk.testing.contract.held import HeldContract
from ropewalk.testing.contract.history import HistoryContract, RandomLifeContract
from ropewalk.testing.contract.keys import KeyContract, KeyRetryContract, KeyUpdateContract
from ropewalk.testing.contract.leases import NoteContract, RenewContract
from ropewalk.testing.contract.limits import (
    ConcurrencyContract,
    DeclaredLimitContract,
    LimitChangeContract,
    LimitUseContract,
)
from ropewalk.testing.contract.logs import BacklogContract, LogContract
from ropewalk.testing.contract.lost_answers import LostAnswerContract
from ropewalk.testing.contract.manual_retry import ManualRetryContract
from ropewalk.testing.contract.moves import MovesContract
from ropewalk.testing.contract.notify import HintBetweenStoresContract, NotifierContract
from ropewalk.testing.contract.order import DueContract, OrderContract
from ropewalk.testing.contract.pruning import (
    OnceContract,
    PruneContract,
    PruneKeysContract,
    SilentWorkersContract,
)
from ropewalk.testing.contract.purge import PurgeContract
from ropewalk.testing.contract.quota_changes import QuotaChangeContract
from ropewalk.testing.contract.quota_kinds import RunningQuotaContract, SubmissionQuotaContract
from ropewalk.testing.contract.quotas import InsideQuotaContract, PendingQuotaContract
from ropewalk.testing.contract.races import RaceContract, ThreadContract
from ropewalk.testing.contract.rates import RateContract
from ropewalk.testing.contract.reading import AheadContract, GetContract, QueuesContract, WorkersContract
from ropewalk.testing.contract.recounting import CountedLivesContract
from ropewalk.testing.contract.recovery import DeadlineContract, ReclaimContract
from ropewalk.testing.contract.reopening import CascadeRetryContract, ReopenContract
from ropewalk.testing.contract.repeating import RepeatContract, RepeatedOnceContract, RepeatedSignalContract
from ropewalk.testing.contract.retry_behind_gate import DeferredThenRetriedContract, RetryBehindGateContract
from ropewalk.testing.contract.schedule_fires import FireContract, MissedFireContract, SummerTimeContract
from ropewalk.testing.contract.schedules import ScheduleContract, ScheduleReadingContract
from ropewalk.testing.contract.scopes import ScopeContract
from ropewalk.testing.contract.search import SearchContract
from ropewalk.testing.contract.settle import SettleBatchContract, SettleContract, StoreDecisionContract
from ropewalk.testing.contract.signals import SignalContract
from ropewalk.testing.contract.skip_queue import SkipQueueContract
from ropewalk.testing.contract.spawn import SpawnContract
from ropewalk.testing.contract.stale import StaleContract
from ropewalk.testing.contract.stats import (
    FoldContract,
    PeriodStatisticsContract,
    StandingContract,
    StatisticsGroupingContract,
    TenantsWithContract,
)
from ropewalk.testing.contract.steps import SleepContract, StepContract
from ropewalk.testing.contract.submit import SubmitContract
from ropewalk.testing.contract.sweep import DeadlineSweepContract, SweepContract
from ropewalk.testing.contract.tenants import TenantContract
from ropewalk.testing.contract.update_delete_pause import DeleteContract, PauseContract, UpdateContract
from ropewalk.testing.contract.values import GroupValueContract


class WorkflowContract(
    # groups
    ScopeContract,
    GroupValueContract,
    ReopenContract,
    CancelGroupContract,
    OrphanContract,
    # dependencies
    GateContract,
    GateRefusalContract,
    InsideGroupContract,
    GraphContract,
    DoomContract,
    GateTimeoutContract,
    CascadeRetryContract,
    RetryBehindGateContract,
    InUseContract,
    TenantGraphContract,
    # chains, steps, sleeps and signals
    ChainContract,
    EndingContract,
    StepContract,
    SleepContract,
    SignalContract,
    # large and racing ends
    CascadeContract,
    DeferredThenRetriedContract,
    WorkflowRaceContract,
):
    """Everything that a store must do for groups, dependencies, chains and steps."""


class StoreContract(
    # capabilities
    DeclarationContract,
    # submission
    SubmitContract,
    KeyContract,
    KeyRetryContract,
    KeyUpdateContract,
    SkipQueueContract,
    SpawnContract,
    # claims
    ClaimContract,
    ClaimsInARowContract,
    SettlementsInARowContract,
    OrderContract,
    TurnContract,
    AgeingContract,
    DueContract,
    BufferContract,
    RoomContract,
    DeclinedJobContract,
    DeadlineContract,
    ReclaimContract,
    # limits
    ConcurrencyContract,
    LimitUseContract,
    RateContract,
    DeclaredLimitContract,
    LimitChangeContract,
    # quotas
    PendingQuotaContract,
    InsideQuotaContract,
    RunningQuotaContract,
    SubmissionQuotaContract,
    QuotaChangeContract,
    # leases
    RenewContract,
    NoteContract,
    HeldContract,
    LogContract,
    SweepContract,
    DeadlineSweepContract,
    LostAnswerContract,
    # a clock that is set back
    ClockSetBackContract,
    # settlements
    SettleContract,
    SettleBatchContract,
    StoreDecisionContract,
    StaleContract,
    FenceContract,
    CompensationContract,
    # changes by users and operators
    CancelContract,
    ManualRetryContract,
    UpdateContract,
    DeleteContract,
    PurgeContract,
    PauseContract,
    # calls that are repeated
    RepeatContract,
    RepeatedSignalContract,
    RepeatedOnceContract,
    # reading and hints
    GetContract,
    SearchContract,
    QueuesContract,
    BacklogContract,
    AheadContract,
    WorkersContract,
    ExamineContract,
    NotifierContract,
    HintBetweenStoresContract,
    # statistics
    PeriodStatisticsContract,
    StatisticsGroupingContract,
    StandingContract,
    TenantsWithContract,
    FoldContract,
    CountedLivesContract,
    # pruning
    PruneContract,
    PruneKeysContract,
    OnceContract,
    SilentWorkersContract,
    # workflows
    WorkflowContract,
    # schedules
    ScheduleContract,
    ScheduleReadingContract,
    FireContract,
    MissedFireContract,
    SummerTimeContract,
    # what a service keeps beside the jobs
    DocumentContract,
    DocumentListContract,
    DocumentTakingContract,
    # everything together
    MovesContract,
    HistoryContract,
    RandomLifeContract,
    TenantContract,
    RaceContract,
    ThreadContract,
):
    """Everything that a store must do; each base class is a family of tests, whose docstring states one promise."""

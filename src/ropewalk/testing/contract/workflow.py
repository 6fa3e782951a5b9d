"""The families of examples about jobs that belong together."""

from __future__ import annotations

from ropewalk.testing.contract.cascades import CascadeContract, FlowRaceContract
from ropewalk.testing.contract.chains import ChainContract
from ropewalk.testing.contract.dependants import InUseContract, TenantGraphContract
from ropewalk.testing.contract.dooming import DoomContract, GateTimeoutContract
from ropewalk.testing.contract.ending import EndingContract
from ropewalk.testing.contract.gate_intake import GateRefusalContract, GraphContract, InsideContract
from ropewalk.testing.contract.gates import GateContract
from ropewalk.testing.contract.group_care import CancelGroupContract, OrphanContract
from ropewalk.testing.contract.reopening import CascadeRetryContract, ReopenContract
from ropewalk.testing.contract.retry_behind_gate import DeferredThenRetriedContract, RetryBehindGateContract
from ropewalk.testing.contract.scopes import ScopeContract
from ropewalk.testing.contract.signals import SignalContract
from ropewalk.testing.contract.steps import SleepContract, StepContract
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
    InsideContract,
    GraphContract,
    DoomContract,
    GateTimeoutContract,
    CascadeRetryContract,
    RetryBehindGateContract,
    InUseContract,
    TenantGraphContract,
    # one after another, and in between
    ChainContract,
    EndingContract,
    StepContract,
    SleepContract,
    SignalContract,
    # much at once
    CascadeContract,
    DeferredThenRetriedContract,
    FlowRaceContract,
):
    """What a store must do for groups, dependencies, chains and steps, by example."""

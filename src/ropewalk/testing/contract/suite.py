"""Every family of examples, put together."""

from __future__ import annotations

from ropewalk.testing.contract.buffer import BufferContract
from ropewalk.testing.contract.claim import ClaimContract
from ropewalk.testing.contract.compensation import CompensationContract
from ropewalk.testing.contract.keys import KeyContract, KeyRevivalContract
from ropewalk.testing.contract.moves import MovesContract
from ropewalk.testing.contract.order import DueContract, OrderContract
from ropewalk.testing.contract.recovery import DeadlineContract, ReclaimContract
from ropewalk.testing.contract.settle import LastWordContract, SettleBatchContract, SettleContract
from ropewalk.testing.contract.skip_queue import SkipQueueContract
from ropewalk.testing.contract.spawn import SpawnContract
from ropewalk.testing.contract.stale import StaleContract
from ropewalk.testing.contract.submit import SubmitContract


class StoreContract(
    # coming in
    SubmitContract,
    KeyContract,
    KeyRevivalContract,
    SkipQueueContract,
    SpawnContract,
    # being given out
    ClaimContract,
    OrderContract,
    DueContract,
    BufferContract,
    DeadlineContract,
    ReclaimContract,
    # ending
    SettleContract,
    SettleBatchContract,
    LastWordContract,
    StaleContract,
    CompensationContract,
    # and overall
    MovesContract,
):
    """What a store must do, by example."""

"""What every store promises, split by who relies on it.

Every method is one transition or one question, in domain words, and takes batches. Delays are
relative and times come from the store's own clock, so that callers' clocks never matter.
`proof.conformance` is the specification these protocols are held to.

Beside them stands what all stores do alike: `watch`, `rollups` and `translation`.
"""

from penstock.store.contract.changes import Changes, FollowerState
from penstock.store.contract.controls import Controls
from penstock.store.contract.dead import OPEN, DeadGroup, DeadLetter, DeadLetters, Resolution
from penstock.store.contract.jobs import (
    Claim,
    Claimed,
    Held,
    JobStore,
    Leases,
    Renewal,
    Report,
    Slots,
)
from penstock.store.contract.metrics import Metrics, QueueDepth, Window
from penstock.store.contract.reader import (
    Dependencies,
    Dependency,
    Execution,
    Found,
    FoundIds,
    JobFilter,
    JobReader,
    LogLine,
    Standing,
)
from penstock.store.contract.records import AuditFilter, AuditLog, Record, Records
from penstock.store.contract.schedules import Schedules
from penstock.store.contract.store import Durability, Store, Subscription
from penstock.store.contract.transfer import (
    COLUMNS,
    Bookmark,
    Page,
    Part,
    Row,
    Snapshot,
    Tally,
    Transfer,
)
from penstock.store.contract.upkeep import (
    Beat,
    Fate,
    Pruned,
    Rescued,
    Retention,
    Upkeep,
    WorkerInfo,
    Workers,
)

__all__ = [
    "COLUMNS",
    "OPEN",
    "AuditFilter",
    "AuditLog",
    "Beat",
    "Bookmark",
    "Changes",
    "Claim",
    "Claimed",
    "Controls",
    "DeadGroup",
    "DeadLetter",
    "DeadLetters",
    "Dependencies",
    "Dependency",
    "Durability",
    "Execution",
    "Fate",
    "FollowerState",
    "Found",
    "FoundIds",
    "Held",
    "JobFilter",
    "JobReader",
    "JobStore",
    "Leases",
    "LogLine",
    "Metrics",
    "Page",
    "Part",
    "Pruned",
    "QueueDepth",
    "Record",
    "Records",
    "Renewal",
    "Report",
    "Rescued",
    "Resolution",
    "Retention",
    "Row",
    "Schedules",
    "Slots",
    "Snapshot",
    "Standing",
    "Store",
    "Subscription",
    "Tally",
    "Transfer",
    "Upkeep",
    "Window",
    "WorkerInfo",
    "Workers",
]

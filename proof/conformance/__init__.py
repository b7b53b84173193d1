"""The specification of a store: one suite, run unchanged on every one.

A backend's test module says `from proof.conformance import *` and provides three
fixtures: `clock` (a `FakeClock`), `store` (an open store that uses it) and `reopen`, a callable
that closes the store and returns the same installation opened again (it may skip).
"""
# ruff: noqa: E402 - pytest must hear of the modules before they are imported

import pytest

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{topic}"
        for topic in (
            "audit",
            "build",
            "breakers",
            "changes",
            "claim",
            "dead",
            "dependencies",
            "enqueue",
            "graphs",
            "fleet",
            "inputs",
            "keys",
            "leases",
            "life",
            "limits",
            "linking",
            "metrics",
            "operate",
            "order",
            "pauses",
            "rates",
            "reader",
            "records",
            "rescue",
            "schedules",
            "search",
            "restore",
            "settle",
            "standing",
            "states",
            "totals",
            "furnish",
            "transfer",
            "triage",
            "upkeep",
            "watch",
            "workers",
        )
    )
)

from proof.conformance.audit import TestAuditLog, TestFindEntries
from proof.conformance.breakers import TestBreakers, TestDefiningBreakers
from proof.conformance.changes import TestChanges, TestFollowing
from proof.conformance.claim import (
    TestAtMost,
    TestClaim,
    TestDue,
    TestFence,
    TestFilters,
    TestOrder,
    TestPrefetch,
    TestTenants,
)
from proof.conformance.dead import TestDeadLetters, TestFindDead, TestPurge, TestResolve
from proof.conformance.dependencies import (
    TestEdges,
    TestShapes,
    TestWaitingChildren,
    TestWaysToEnd,
)
from proof.conformance.enqueue import TestBatch, TestEnqueue, TestRetriedEnqueue
from proof.conformance.graphs import TestGraphs
from proof.conformance.inputs import TestConditions, TestInputs
from proof.conformance.keys import (
    TestForever,
    TestKeys,
    TestRequeueWithKey,
    TestUntilDone,
    TestWhilePending,
    TestWindow,
)
from proof.conformance.leases import (
    TestLateHolder,
    TestRenewal,
    TestStaleWrites,
    TestWallClock,
)
from proof.conformance.life import TestDurability, TestLife, TestReboot
from proof.conformance.limits import (
    TestChangingLimits,
    TestConcurrency,
    TestFleet,
    TestSlotsEnd,
)
from proof.conformance.linking import TestLinking
from proof.conformance.metrics import TestDepths, TestFigures, TestRollUp
from proof.conformance.operate import TestCancelRunning, TestCancelWaiting, TestRequeue
from proof.conformance.order import TestOrderKeys
from proof.conformance.pauses import TestPausedJobs, TestPauses
from proof.conformance.rates import TestRates
from proof.conformance.reader import (
    TestExecutions,
    TestFind,
    TestGet,
    TestLogs,
    TestRunning,
)
from proof.conformance.records import (
    TestComparing,
    TestExpiringRecords,
    TestListingRecords,
    TestRecords,
)
from proof.conformance.rescue import (
    TestNothingComesBackForEver,
    TestRescue,
    TestRescueByOwner,
)
from proof.conformance.restore import TestRestore
from proof.conformance.schedules import TestDueSchedules, TestFire, TestSchedules
from proof.conformance.search import (
    TestBoundedLooks,
    TestSearch,
    TestSearchByStatus,
    TestSearchByTime,
    TestSearchForText,
    TestSearchInPayloads,
)
from proof.conformance.settle import TestEndings, TestReport, TestSettlingInBatches
from proof.conformance.standing import TestStanding, TestStandingUnderControls
from proof.conformance.states import TestStates
from proof.conformance.totals import TestTotals, TestTotalsGrow
from proof.conformance.transfer import (
    TestAdopting,
    TestBookmarks,
    TestReadingOut,
    TestSnapshots,
)
from proof.conformance.triage import (
    TestAmend,
    TestCanaries,
    TestGroups,
    TestSpreadRequeue,
)
from proof.conformance.upkeep import TestExpiry, TestLeadership, TestPrune, TestStage
from proof.conformance.watch import TestSubscription, TestWatch
from proof.conformance.workers import (
    TestRunningTypes,
    TestWaitingTypes,
    TestWorkers,
)

__all__ = [
    "TestAdopting",
    "TestAmend",
    "TestAtMost",
    "TestAuditLog",
    "TestBatch",
    "TestBookmarks",
    "TestBoundedLooks",
    "TestBreakers",
    "TestCanaries",
    "TestCancelRunning",
    "TestCancelWaiting",
    "TestChanges",
    "TestChangingLimits",
    "TestClaim",
    "TestComparing",
    "TestConcurrency",
    "TestConditions",
    "TestDeadLetters",
    "TestDefiningBreakers",
    "TestDepths",
    "TestDue",
    "TestDueSchedules",
    "TestDurability",
    "TestEdges",
    "TestEndings",
    "TestEnqueue",
    "TestExecutions",
    "TestExpiringRecords",
    "TestExpiry",
    "TestFence",
    "TestFigures",
    "TestFilters",
    "TestFind",
    "TestFindDead",
    "TestFindEntries",
    "TestFire",
    "TestFleet",
    "TestFollowing",
    "TestForever",
    "TestGet",
    "TestGraphs",
    "TestGroups",
    "TestInputs",
    "TestKeys",
    "TestLateHolder",
    "TestLeadership",
    "TestLife",
    "TestLinking",
    "TestListingRecords",
    "TestLogs",
    "TestNothingComesBackForEver",
    "TestOrder",
    "TestOrderKeys",
    "TestPausedJobs",
    "TestPauses",
    "TestPrefetch",
    "TestPrune",
    "TestPurge",
    "TestRates",
    "TestReadingOut",
    "TestReboot",
    "TestRecords",
    "TestRenewal",
    "TestReport",
    "TestRequeue",
    "TestRequeueWithKey",
    "TestRescue",
    "TestRescueByOwner",
    "TestResolve",
    "TestRestore",
    "TestRetriedEnqueue",
    "TestRollUp",
    "TestRunning",
    "TestRunningTypes",
    "TestSchedules",
    "TestSearch",
    "TestSearchByStatus",
    "TestSearchByTime",
    "TestSearchForText",
    "TestSearchInPayloads",
    "TestSettlingInBatches",
    "TestShapes",
    "TestSlotsEnd",
    "TestSnapshots",
    "TestSpreadRequeue",
    "TestStage",
    "TestStaleWrites",
    "TestStanding",
    "TestStandingUnderControls",
    "TestStates",
    "TestSubscription",
    "TestTenants",
    "TestTotals",
    "TestTotalsGrow",
    "TestUntilDone",
    "TestWaitingChildren",
    "TestWaitingTypes",
    "TestWallClock",
    "TestWatch",
    "TestWaysToEnd",
    "TestWhilePending",
    "TestWindow",
    "TestWorkers",
]

"""The specification of a store: one suite, run unchanged on every one.

A backend's test module says `from penstock.testing.conformance import *` and provides three
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

from penstock.testing.conformance.audit import TestAuditLog, TestFindEntries
from penstock.testing.conformance.breakers import TestBreakers, TestDefiningBreakers
from penstock.testing.conformance.claim import (
    TestClaim,
    TestDue,
    TestFence,
    TestFilters,
    TestOrder,
    TestPrefetch,
    TestTenants,
)
from penstock.testing.conformance.dead import TestDeadLetters, TestFindDead, TestPurge, TestResolve
from penstock.testing.conformance.dependencies import (
    TestEdges,
    TestShapes,
    TestWaitingChildren,
    TestWaysToEnd,
)
from penstock.testing.conformance.enqueue import TestBatch, TestEnqueue, TestRetriedEnqueue
from penstock.testing.conformance.graphs import TestGraphs
from penstock.testing.conformance.inputs import TestConditions, TestInputs
from penstock.testing.conformance.keys import (
    TestForever,
    TestKeys,
    TestRequeueWithKey,
    TestUntilDone,
    TestWhilePending,
    TestWindow,
)
from penstock.testing.conformance.leases import (
    TestLateHolder,
    TestRenewal,
    TestStaleWrites,
    TestWallClock,
)
from penstock.testing.conformance.life import TestDurability, TestLife, TestReboot
from penstock.testing.conformance.limits import (
    TestChangingLimits,
    TestConcurrency,
    TestFleet,
    TestSlotsEnd,
)
from penstock.testing.conformance.linking import TestLinking
from penstock.testing.conformance.metrics import TestDepths, TestFigures, TestRollUp
from penstock.testing.conformance.operate import TestCancelRunning, TestCancelWaiting, TestRequeue
from penstock.testing.conformance.order import TestOrderKeys
from penstock.testing.conformance.pauses import TestPausedJobs, TestPauses
from penstock.testing.conformance.rates import TestRates
from penstock.testing.conformance.reader import (
    TestExecutions,
    TestFind,
    TestGet,
    TestLogs,
    TestRunning,
)
from penstock.testing.conformance.records import (
    TestComparing,
    TestExpiringRecords,
    TestListingRecords,
    TestRecords,
)
from penstock.testing.conformance.rescue import (
    TestNothingComesBackForEver,
    TestRescue,
    TestRescueByOwner,
)
from penstock.testing.conformance.restore import TestRestore
from penstock.testing.conformance.schedules import TestDueSchedules, TestFire, TestSchedules
from penstock.testing.conformance.search import (
    TestBoundedLooks,
    TestSearch,
    TestSearchByStatus,
    TestSearchByTime,
    TestSearchForText,
    TestSearchInPayloads,
)
from penstock.testing.conformance.settle import TestEndings, TestReport, TestSettlingInBatches
from penstock.testing.conformance.standing import TestStanding, TestStandingUnderControls
from penstock.testing.conformance.states import TestStates
from penstock.testing.conformance.totals import TestTotals, TestTotalsGrow
from penstock.testing.conformance.transfer import (
    TestAdopting,
    TestBookmarks,
    TestReadingOut,
    TestSnapshots,
)
from penstock.testing.conformance.triage import (
    TestAmend,
    TestCanaries,
    TestGroups,
    TestSpreadRequeue,
)
from penstock.testing.conformance.upkeep import TestExpiry, TestLeadership, TestPrune, TestStage
from penstock.testing.conformance.watch import TestSubscription, TestWatch
from penstock.testing.conformance.workers import (
    TestRunningTypes,
    TestWaitingTypes,
    TestWorkers,
)

__all__ = [
    "TestAdopting",
    "TestAmend",
    "TestAuditLog",
    "TestBatch",
    "TestBookmarks",
    "TestBoundedLooks",
    "TestBreakers",
    "TestCanaries",
    "TestCancelRunning",
    "TestCancelWaiting",
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

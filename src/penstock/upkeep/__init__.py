"""The passes that keep an installation healthy; whichever process leads runs them."""

from penstock.client.app import Penstock
from penstock.service import Service
from penstock.upkeep.alerts import WatchAlerts
from penstock.upkeep.critical import WatchCritical
from penstock.upkeep.declarations import Declarations
from penstock.upkeep.leader import TERM_SECONDS, Leader
from penstock.upkeep.prune import Prune
from penstock.upkeep.release import Release
from penstock.upkeep.rescue import Rescue
from penstock.upkeep.roll_up import RollUp
from penstock.upkeep.schedules import FireSchedules
from penstock.upkeep.stage import Stage
from penstock.upkeep.unclaimed import Unclaimed


def upkeep_services(app: Penstock, owner: str) -> list[Service]:
    """All passes of one process, and the election that decides whether they do anything."""
    # A dead leader's term must not keep leases from being rescued longer than they last.
    leader = Leader(app, owner, min(TERM_SECONDS, app.settings.lease))
    return [
        leader,
        Declarations(app),
        FireSchedules(app, leader),
        Stage(app, leader),
        Release(app, leader),
        Rescue(app, leader),
        RollUp(app, leader),
        Prune(app, leader),
        Unclaimed(app, leader),
        WatchAlerts(app, leader),
        WatchCritical(app, leader),
    ]

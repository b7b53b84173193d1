"""The passes that keep an installation healthy; whichever process leads runs them."""

from penstock.app.penstock import Penstock
from penstock.service import Service
from penstock.upkeep.extensions import extension_passes
from penstock.upkeep.leader import TERM_SECONDS, Leader
from penstock.upkeep.prune import Prune, RollUp
from penstock.upkeep.rescue import Rescue
from penstock.upkeep.schedules import FireSchedules
from penstock.upkeep.sweeps import Declarations, Release, Stage, Unclaimed


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
        *extension_passes(app, leader),
    ]

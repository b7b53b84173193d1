"""The passes that keep an installation healthy; whichever process leads runs them."""

from penstock.client.app import Penstock
from penstock.service import Service
from penstock.upkeep.leader import Leader
from penstock.upkeep.prune import Prune
from penstock.upkeep.rescue import Rescue
from penstock.upkeep.roll_up import RollUp
from penstock.upkeep.stage import Stage
from penstock.upkeep.unclaimed import Unclaimed


def upkeep_services(app: Penstock, owner: str) -> list[Service]:
    """All passes of one process, and the election that decides whether they do anything."""
    leader = Leader(app, owner)
    return [
        leader,
        Stage(app, leader),
        Rescue(app, leader),
        RollUp(app, leader),
        Prune(app, leader),
        Unclaimed(app, leader),
    ]

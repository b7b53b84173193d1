"""The eighteen types of jobs as one blueprint, each with its row of the table of options."""

from penstock.app.blueprint import Blueprint
from penstock.apps.agents.learning.jobs import WORKERS as LEARNING
from penstock.apps.agents.maintenance.jobs import WORKERS as MAINTENANCE
from penstock.apps.agents.memory.jobs import WORKERS as MEMORY
from penstock.apps.agents.options import OPTIONS
from penstock.apps.agents.schedules import declare_defaults
from penstock.apps.agents.sessions.jobs import WORKERS as SESSIONS
from penstock.apps.agents.vectors.jobs import WORKERS as VECTORS
from penstock.apps.agents.webhooks.jobs import WORKERS as WEBHOOKS
from penstock.apps.agents.worker import add

WORKERS = (*MEMORY, *VECTORS, *LEARNING, *SESSIONS, *WEBHOOKS, *MAINTENANCE)

jobs = Blueprint()
for worker in WORKERS:
    add(jobs, worker, **OPTIONS[worker.name].registration())
declare_defaults(jobs)

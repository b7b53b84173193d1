"""The types of jobs about vectors."""

from typing import Any

from penstock.apps.agents.worker import Worker

WORKERS: tuple[type[Worker[Any, Any]], ...] = ()

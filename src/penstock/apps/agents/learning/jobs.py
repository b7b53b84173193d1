"""The types of jobs about learning."""

from typing import Any

from penstock.apps.agents.worker import Worker

WORKERS: tuple[type[Worker[Any, Any]], ...] = ()

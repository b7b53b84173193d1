"""Penstock in a Django project: a backend for Django's tasks, and `manage.py penstock`.

Nothing here is loaded, and Django neither, before a name is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.django.backend import PenstockBackend
    from penstock.django.handlers import job_options, with_connections

    app: Penstock

_HOME = {
    "PenstockBackend": "backend",
    "job_options": "handlers",
    "with_connections": "handlers",
}

__all__ = ["PenstockBackend", "app", "job_options", "with_connections"]


def __getattr__(name: str) -> Any:
    """Load a name; `app` is the application a worker runs, `mail` that of the backend `mail`."""
    if name in _HOME:
        return getattr(import_module(f"penstock.django.{_HOME[name]}"), name)
    if not name.startswith("_"):
        backend = import_module("penstock.django.backend")
        found = backend.worker_app("default" if name == "app" else name)
        if found is not None:
            return found
    raise AttributeError(f"module 'penstock.django' has no attribute {name!r}")

"""The task framework of this project: Django's own since 6.0, or its backport django-tasks.

They are the same but for a few names. A project that installs the backport means the backport.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


def _name() -> str:
    try:
        apps = [app.partition(".")[0] for app in settings.INSTALLED_APPS]
    except ImproperlyConfigured:  # outside of a project
        apps = []
    own = find_spec("django.tasks") is not None
    return "django.tasks" if own and "django_tasks" not in apps else "django_tasks"


NAME = _name()
_tasks = import_module(NAME)
_base = import_module(f"{NAME}.base")
_exceptions = import_module(f"{NAME}.exceptions")
_signals = import_module(f"{NAME}.signals")
_json = import_module("django_tasks.utils" if NAME == "django_tasks" else "django.utils.json")

task_backends: Any = _tasks.task_backends
BaseTaskBackend: Any = import_module(f"{NAME}.backends.base").BaseTaskBackend
Task: Any = _base.Task
TaskContext: Any = _base.TaskContext
TaskError: Any = _base.TaskError
TaskResult: Any = _base.TaskResult
TaskResultStatus: Any = _base.TaskResultStatus
InvalidTask: Any = getattr(_exceptions, "InvalidTask", None) or _exceptions.InvalidTaskError
TaskResultDoesNotExist: Any = _exceptions.TaskResultDoesNotExist
normalize_json: Any = _json.normalize_json
task_enqueued: Any = _signals.task_enqueued
task_started: Any = _signals.task_started
task_finished: Any = _signals.task_finished

"""The project of the guide, written to files as a reader would, and run by `manage.py`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.django.conftest import OWN

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "django.md"
FILE = re.compile(
    r'^```python title="(?P<path>[^"]+)"\n(?P<code>.*?)^```$', re.DOTALL | re.MULTILINE
)
MANAGE = """
import sys
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""
BEFORE = """
import django
django.setup()
from django.core.management import call_command
from django.test import Client
call_command("migrate", run_syncdb=True)
call_command("check")
shipment = Client().get("/buy?item=ink").json()["shipment"]
print(shipment, Client().get(f"/shipments/{shipment}").json())
from orders.tasks import ship
from penstock.django import app
mail = Client().get("/remind").json()["mail"]
print([Client().get(f"/shipments/{other}").status_code for other in ("unknown", mail)])
withdrawn = ship.enqueue(7)
app.sync.cancel(withdrawn.id)
print(Client().get(f"/shipments/{withdrawn.id}").json())
"""
AFTER = """
import sys, django
django.setup()
from django.core.management import call_command
from django.test import Client
print(Client().get(f"/shipments/{sys.argv[1]}").json())
call_command("test")
call_command("penstock", "jobs", "ls")
"""


class Project:
    """The files of the guide in a folder."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._environment = os.environ | {
            "DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "shop.settings",
            "PYTHONWARNINGS": "error",
        }
        for file in FILE.finditer(GUIDE.read_text("utf-8")):
            path = folder / file["path"]
            path.parent.mkdir(exist_ok=True)
            (path.parent / "__init__.py").touch()
            path.write_text(file["code"] if OWN else with_backport(file["code"]))
        for name, code in {"manage": MANAGE, "before": BEFORE, "after": AFTER}.items():
            (folder / f"{name}.py").write_text(code)

    def run(self, *words: str) -> str:
        """Run a script of the project; what it prints."""
        command = [sys.executable, *words]
        done = subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


def with_backport(code: str) -> str:
    """The same for Django 5.2, as the first paragraph of the guide says."""
    code = code.replace("django.tasks", "django_tasks")
    return code.replace("INSTALLED_APPS = [", 'INSTALLED_APPS = ["django_tasks",')


@pytest.fixture
def project(tmp_path: Path, postgres_store_url: str) -> Project:
    return Project(tmp_path, postgres_store_url)


@pytest.mark.thorough
def test_the_project_of_the_guide_works_as_it_says(project: Project) -> None:
    before = project.run("before.py")
    assert "no issues" in before
    assert "'status': 'READY'" in before
    assert "[404, 404]" in before
    assert "{'status': 'FAILED', 'value': None}" in before
    [shipment] = re.findall(r"^([0-9A-Z]{26}) ", before, re.MULTILINE)

    project.run("manage.py", "penstock", "worker", "--burst")
    after = project.run("after.py", shipment)
    assert "'status': 'SUCCESSFUL', 'value': 'ink is on its way'" in after
    assert "Ran 2 tests" in after
    assert "orders.tasks.ship" in after

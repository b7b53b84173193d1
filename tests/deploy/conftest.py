from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What `make check` looks for in deploy/."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return import_module("check_deploy")

import subprocess
import sys

import pytest

import penstock
import penstock.testing


@pytest.mark.parametrize("package", [penstock, penstock.testing], ids=["penstock", "testing"])
def test_every_public_name_loads(package: object) -> None:
    names = vars(package)["__all__"]
    assert sorted(names, key=str.lower) == sorted(dir(package), key=str.lower)
    for name in names:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = package.nothing_of_the_kind  # type: ignore[attr-defined]


def test_importing_penstock_imports_nothing_else() -> None:
    code = "import sys; import penstock; print([m for m in sys.modules if 'penstock' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['penstock']"


def test_enqueueing_does_not_import_the_worker_or_the_command_line() -> None:
    code = "import sys; from penstock import Penstock, Context; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not {m for m in loaded if m.startswith(("penstock.worker", "penstock.cli."))}
    assert not loaded & {"typer", "rich", "psutil", "structlog"}


def test_a_command_loads_nothing_that_only_others_need() -> None:
    code = "import sys; import penstock.cli.program; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"asyncio", "penstock.app.penstock", "penstock.store.contract"}
    assert not {m for m in loaded if m.startswith(("rich.", "structlog.", "penstock.upkeep"))}

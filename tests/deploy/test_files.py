"""The checks of the deployment files: they pass as they are, and fail when something is amiss."""

from types import ModuleType

import pytest
import yaml

from .conftest import DEPLOY


def test_everything_is_as_it_should_be(checks: ModuleType) -> None:
    assert list(checks.problems()) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("- noeviction", "- allkeys-lru", "--maxmemory-policy noeviction"),
        ('- "yes"', '- "no"', "--appendonly yes"),
        ("--queues, mail", "--queue, mail", "--queue"),
        ("command: [migrate]", "command: [migrat]", "migrat"),
        ("mem_limit: 512m", "x-limit: 512m", "server has no mem_limit"),
        ("mem_limit: 1280m", "mem_limit: 1024m", "leaves room in 1024m"),
        ('PENSTOCK_MEMORY_LIMIT_MB: "512"', "X: y", "no PENSTOCK_MEMORY_LIMIT_MB"),
        ("- --requirepass", "- --masterauth", "valkey asks for no password"),
        ("postgresql://penstock_worker:", "postgresql://postgres:", "as penstock_worker"),
        ("postgresql://penstock_server:", "postgresql://penstock_owner:", "as penstock_server"),
        ("health, --worker, /tmp/health]", "workers, ls]", "not asked for its own health"),
        ("health, --worker, /tmp/health]", "health, --worker, /tmp/x]", "its own health"),
        ("cap_drop: [ALL]", "cap_drop: []", "keeps capabilities"),
        ('"8787"\n', '"8787"\n      API_TOKEN: pk_1\n', "a secret"),
    ],
)
def test_a_compose_file_with_a_fault_is_found(
    checks: ModuleType, old: str, new: str, problem: str
) -> None:
    text = (DEPLOY / "compose.yaml").read_text("utf-8")
    assert old in text
    assert any(problem in found for found in checks.compose(text.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("USER 10001:10001", "USER root", "runs as root"),
        (":3.13-slim-bookworm\n", ":latest\n", "names no version"),
        ("WORKDIR /app", "ADD https://example.com/x /app", "ADD"),
        ("WORKDIR /app", "ENV API_TOKEN=abc", "a secret"),
        ('ENTRYPOINT ["penstock"]', "ENTRYPOINT penstock", "swallow signals"),
        ("COPY src ./src", "COPY source ./src", "source, which does not exist"),
        ('CMD ["up"', 'CMD ["run"', "penstock run"),
        ("pip install --require-hashes -r requirements/b", "pip install -r requirements/b", "hash"),
    ],
)
def test_a_dockerfile_with_a_fault_is_found(
    checks: ModuleType, old: str, new: str, problem: str
) -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    assert old in text
    assert any(problem in found for found in checks.dockerfile(text.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("ProtectHome=true", "ProtectHome=false", "ProtectHome"),
        ("Restart=always", "Restartt=always", "[Service] has no Restartt"),
        ("--queues %i", "--lanes %i", "--lanes"),
        ("penstock worker", "penstock wroker", "wroker"),
        ("Type=notify", "Type=exec", "nobody hears"),
        ("RuntimeDirectory=penstock-worker", "RuntimeDirectory=penstock", "cannot write"),
        ("/etc/penstock/worker.env", "/etc/penstock/owner.env", "as penstock_worker"),
    ],
)
def test_a_unit_with_a_fault_is_found(checks: ModuleType, old: str, new: str, problem: str) -> None:
    text = (DEPLOY / "systemd" / "penstock-worker@.service").read_text("utf-8")
    assert old in text
    assert any(problem in found for found in checks.unit(text.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"securityContext": {}}, "may run as root"),
        ({"containers": [{"args": ["serve"]}]}, "serve"),
        ({"containers": [{"args": ["server"]}]}, "no limit of memory"),
        ({"containers": [{"args": ["server"]}]}, "no liveness probe"),
        ({"containers": [{"args": ["server"]}]}, "from the secret penstock-server"),
        ({"containers": [{"args": ["worker", "shop:app"]}]}, "not asked for its own health"),
        ({"containers": [{"args": ["worker", "shop:app"]}]}, "no PENSTOCK_MEMORY_LIMIT_MB"),
    ],
)
def test_a_manifest_with_a_fault_is_found(
    checks: ModuleType, change: dict[str, object], problem: str
) -> None:
    pod = {"securityContext": {"runAsNonRoot": True}, "containers": [], **change}
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x"},
        "spec": {"template": {"spec": pod}},
    }
    assert any(problem in found for found in checks.manifest(document))


def test_a_backup_that_runs_as_root_is_found(checks: ModuleType) -> None:
    text = (DEPLOY / "kubernetes" / "backup.yaml").read_text("utf-8")
    backup = next(yaml.safe_load_all(text))
    assert list(checks.manifest(backup)) == []
    pod = backup["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    pod["securityContext"]["runAsNonRoot"] = False
    assert any("may run as root" in found for found in checks.manifest(backup))


def test_a_pod_is_not_to_be_read_by_somebody_without_a_token(checks: ModuleType) -> None:
    text = (DEPLOY / "kubernetes" / "server.yaml").read_text("utf-8")
    server = next(yaml.safe_load_all(text))
    assert list(checks.manifest(server)) == []
    server["spec"]["template"]["metadata"]["annotations"] = {"prometheus.io/scrape": "true"}
    assert any("token" in found for found in checks.manifest(server))


@pytest.mark.parametrize(
    ("line", "good"),
    [
        ("$ penstock jobs ls --status failed", True),
        ("$ penstock doctor --strict    # exit code 0", True),
        ("$ penstock users add ben < password.txt", True),
        ("$ penstock jobs list", False),
        ("$ penstock workers ls --all", False),
        ("`penstock worker shop:app --queues mail`", True),
        ("`penstock worker --queues mail`", False),
    ],
)
def test_a_page_may_name_only_commands_that_exist(
    checks: ModuleType, line: str, good: bool
) -> None:
    assert (list(checks.page(line)) == []) is good

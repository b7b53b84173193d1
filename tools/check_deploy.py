"""Checks what can be checked of deploy/ without containers: syntax, commands, limits, hardening."""

import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from commands import refusal

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"

INSTRUCTIONS = """
    FROM RUN COPY ENV ARG WORKDIR USER EXPOSE VOLUME STOPSIGNAL ENTRYPOINT CMD HEALTHCHECK LABEL
"""
SECRET = re.compile(r"(?i)(password|passwd|secret|token|api_key)[ \t]*[=:][ \t]*[^\s\[]")
HARDENED = {
    "NoNewPrivileges": "true",
    "CapabilityBoundingSet": "",
    "ProtectSystem": "strict",
    "ProtectHome": "true",
    "PrivateTmp": "true",
    "PrivateDevices": "true",
    "RestrictSUIDSGID": "true",
    "SystemCallArchitectures": "native",
}
SECTIONS = {
    "Unit": "Description After Wants Requires Documentation StartLimitIntervalSec",
    "Install": "WantedBy",
    "Service": """
        Type WatchdogSec User Group Environment EnvironmentFile RuntimeDirectory WorkingDirectory
        ExecStart KillMode Restart RestartSec TimeoutStopSec MemoryMax StateDirectory UMask
        NoNewPrivileges CapabilityBoundingSet
        AmbientCapabilities ProtectSystem ProtectHome ProtectProc ProtectClock ProtectHostname
        ProtectControlGroups ProtectKernelLogs ProtectKernelModules ProtectKernelTunables PrivateTmp
        PrivateDevices PrivateMounts LockPersonality RestrictAddressFamilies RestrictNamespaces
        RestrictRealtime RestrictSUIDSGID RemoveIPC SystemCallArchitectures SystemCallFilter
    """,
}
ROLES = {"backup": "owner", "migrate": "owner", "server": "server", "worker": "worker"}
"""Which of the roles of deploy/postgres/roles.sql a command connects as."""
MEMORY = "PENSTOCK_MEMORY_LIMIT_MB"
BESIDE_MB = 128
"""What the supervisor takes, and a worker while it drains."""
UNITS_OF_MEMORY = {"m": 1, "g": 1024, "mi": 1, "gi": 1024}
PAGES = ("deploy/runbook.md", "docs/guide/server.md", "docs/guide/deployment.md")


def compose(text: str) -> Iterator[str]:
    """What is wrong with a compose file."""
    document = yaml.safe_load(text)
    for name, service in document["services"].items():
        for wanted in ("image", "mem_limit", "cpus", "restart"):
            if wanted not in service:
                yield f"service {name} has no {wanted}"
        if "healthcheck" not in service and service.get("restart") != "no":
            yield f"service {name} has no healthcheck"
        if service["image"] == "penstock":
            yield from penstock_service(name, service)
            if service.get("read_only") is not True or service.get("cap_drop") != ["ALL"]:
                yield f"service {name} may write to its image, or keeps capabilities"
    yield from valkey(document["services"]["valkey"]["command"])
    if SECRET.search(re.sub(r"\$\{[^}]*\}", "", text)):
        yield "a secret stands in the file"


def valkey(told: Sequence[str]) -> Iterator[str]:
    """What is wrong with the options of a Valkey."""
    for name, value in (("--maxmemory-policy", "noeviction"), ("--appendonly", "yes")):
        if (name, value) not in pairwise(told):
            yield f"valkey is not told {name} {value}"
    if not any(name == "--requirepass" and "${" in value for name, value in pairwise(told)):
        yield "valkey asks for no password"


def penstock_service(name: str, service: Any) -> Iterator[str]:
    """What is wrong with a service of ours: its command, whom it connects as, how it is watched."""
    command, environment = service["command"], service.get("environment", {})
    yield from said(name, command)
    role = f"penstock_{ROLES[command[0]]}"
    if not str(environment.get("PENSTOCK_URL")).startswith(f"postgresql://{role}:$"):
        yield f"service {name} does not connect as {role}"
    if command[0] == "worker":
        probe = service.get("healthcheck", {}).get("test", [])[1:]
        limit, memory = environment.get(MEMORY), service.get("mem_limit", "0m")
        yield from worker(f"service {name}", command, probe, limit, memory)


def worker(
    name: str, command: Sequence[str], probe: Sequence[str], limit: str | None, memory: str
) -> Iterator[str]:
    """What is wrong with a worker: who asks how it is, and how much memory it may take."""
    options = dict(pairwise(map(str, command)))
    if list(probe) != ["penstock", "health", "--worker", options.get("--health")]:
        yield f"{name} is not asked for its own health"
    else:
        yield from said(name, probe[1:])
    number = memory.rstrip("MGmgi")
    room = int(number) * UNITS_OF_MEMORY[memory.removeprefix(number).lower()]
    needed = int(options.get("--processes", 1)) * int(limit or 0)
    if not needed or room < needed + BESIDE_MB:
        yield f"{name} has no {MEMORY} that leaves room in {memory}"


def dockerfile(text: str) -> Iterator[str]:
    """What is wrong with a Dockerfile."""
    lines = logical_lines(text)
    words = [line.split(maxsplit=1) for line in lines]
    for name, *_ in words:
        if name not in INSTRUCTIONS.split():
            yield f"{name} is no instruction to be used here"
    bases = [rest[0].split()[0] for name, *rest in words if name == "FROM"]
    if len(bases) < 2:
        yield "it has one stage only"
    for base in bases:
        if ":" not in base or base.endswith(":latest"):
            yield f"the base {base} names no version"
    users = [rest[0] for name, *rest in words if name == "USER"]
    if not users or users[-1].split(":")[0] in ("root", "0"):
        yield "it runs as root"
    yield from faulty_lines(lines)
    yield from missing_sources(lines)
    yield from said("CMD", yaml.safe_load(next(rest[0] for name, *rest in words if name == "CMD")))


def faulty_lines(lines: Sequence[str]) -> Iterator[str]:
    """Instructions that are wrong by themselves."""
    for line in lines:
        if SECRET.search(line):
            yield f"a secret stands in it: {line[:40]}"
        if line.startswith(("CMD", "ENTRYPOINT")) and not line.split(maxsplit=1)[1].startswith("["):
            yield f"a shell would swallow signals: {line}"
        for step in line.split("&&"):
            if "pip install" in step and not re.search(r"--require-hashes|--no-deps", step):
                yield f"something is installed without its hash: {step.strip()}"


def missing_sources(lines: Sequence[str]) -> Iterator[str]:
    """What a Dockerfile copies and the project does not have."""
    for line in lines:
        if line.startswith("COPY ") and "--from=" not in line:
            for source in line.split()[1:-1]:
                if not (ROOT / source).exists():
                    yield f"it copies {source}, which does not exist"


def unit(text: str) -> Iterator[str]:
    """What is wrong with a systemd unit."""
    section, found, files = "", dict[str, str](), list[str]()
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            if name not in SECTIONS.get(section, "").split():
                yield f"[{section}] has no {name}"
            found[name] = value
            if name == "EnvironmentFile":
                files.append(value)
    for name, value in HARDENED.items():
        if found.get(name) != value:
            yield f"{name} is not {value or 'empty'!r}"
    program, *words = found["ExecStart"].replace("${PENSTOCK_APP}", "shop:app").split()
    if not program.endswith("/penstock"):
        yield f"it starts {program}"
    yield from said("ExecStart", [word.replace("%i", "mail") for word in words])
    yield from service_unit(words, found, files)


def service_unit(words: Sequence[str], found: Mapping[str, str], files: list[str]) -> Iterator[str]:
    """What is wrong with whom a unit connects as, and how it is watched."""
    if f"-/etc/penstock/{ROLES[words[0]]}.env" not in files:
        yield f"it cannot connect as penstock_{ROLES[words[0]]}"
    if words[0] == "worker" and found.get("Type") != "notify":
        yield "nobody hears whether the worker is well"
    if words[0] == "worker" and f"%t/{found.get('RuntimeDirectory')}" not in words:
        yield "its health is kept where it cannot write"


def manifest(document: Any) -> Iterator[str]:
    """What is wrong with a Kubernetes object."""
    kind = document.get("kind", "?")
    if kind == "Kustomization":
        yield from (
            f"{name} is not there"
            for name in document["resources"]
            if not (DEPLOY / "kubernetes" / name).exists()
        )
        return
    name = f"{kind} {document.get('metadata', {}).get('name', '?')}"
    if "?" in name or "apiVersion" not in document:
        yield f"{name} lacks its kind, name or apiVersion"
    owner = document.get("spec", {}).get("jobTemplate", document).get("spec", {})
    pod = owner.get("template", {}).get("spec")
    if pod is None:
        return
    if pod.get("securityContext", {}).get("runAsNonRoot") is not True:
        yield f"{name} may run as root"
    if "prometheus.io/scrape" in owner["template"].get("metadata", {}).get("annotations", {}):
        yield f"{name} is to be read without the token that /metrics wants"
    for container in pod["containers"]:
        yield from container_of(name, container)
        if "memory" not in container.get("resources", {}).get("limits", {}):
            yield f"{name} has no limit of memory"
        if container.get("securityContext", {}).get("readOnlyRootFilesystem") is not True:
            yield f"{name} may write to its image"
        if kind == "Deployment" and "livenessProbe" not in container:
            yield f"{name} has no liveness probe"


def container_of(name: str, container: Any) -> Iterator[str]:
    """What is wrong with a container's command, whom it connects as, how it is watched."""
    command = container["args"]
    yield from said(name, command)
    secret = f"penstock-{ROLES.get(command[0])}"
    if container.get("envFrom") != [{"secretRef": {"name": secret}}]:
        yield f"{name} does not take its URL from the secret {secret}"
    if command[0] == "worker":
        probe = container.get("livenessProbe", {}).get("exec", {}).get("command", [])
        limits = [each["value"] for each in container.get("env", ()) if each["name"] == MEMORY]
        memory = container.get("resources", {}).get("limits", {}).get("memory", "0Mi")
        yield from worker(name, command, probe, limits[0] if limits else None, memory)


def page(text: str) -> Iterator[str]:
    """Commands of a page that the program would not take."""
    for line in re.findall(r"^\$ penstock (.+)$", text, re.MULTILINE):
        yield from said("the page", shlex.split(line.partition(" < ")[0], comments=True))
    for line in re.findall(r"`penstock ([^`]+ [^`]+)`", text):
        if "…" not in line and "NAME" not in line:
            yield from said("the page", shlex.split(line))


def said(where: str, words: Sequence[str]) -> Iterator[str]:
    """The problem with a command, if there is one."""
    problem = refusal([str(word) for word in words])
    if problem is not None:
        yield f"{where} says `penstock {' '.join(map(str, words))}`: {problem}"


def logical_lines(text: str) -> list[str]:
    """A Dockerfile's instructions, each on one line."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines = (line.strip() for line in joined.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def problems() -> Iterator[str]:
    """Everything that is wrong, with its file."""
    single: tuple[tuple[str, Callable[[str], Iterator[str]]], ...] = (
        ("deploy/compose.yaml", compose),
        ("deploy/Dockerfile", dockerfile),
        *((f"deploy/systemd/{each.name}", unit) for each in (DEPLOY / "systemd").glob("*.service")),
        *((name, page) for name in PAGES),
    )
    for name, check in single:
        for problem in check((ROOT / name).read_text("utf-8")):
            yield f"{name}: {problem}."
    for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text("utf-8")):
            for problem in manifest(document):
                yield f"deploy/kubernetes/{file.name}: {problem}."


def main() -> int:
    """Print every problem; 1 if there is any."""
    found = list(problems())
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""How fast the sanitiser is: ordinary text, a prompt, hostile text, and a hook's first use.

    python -m proof.bench.sanitiser

CPU time, so that a busy machine tells the same; the best of several runs.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

from penstock.apps.recorder.sanitise import Sanitiser
from penstock.apps.recorder.sanitise.tokens import TOKENS

ROOT = Path(__file__).parents[2]
MEGABYTE = 1_000_000
RUNS = 3

FIRST_USE = """
from time import process_time as perf_counter
began = perf_counter()
from penstock.apps.recorder.sanitise import Sanitiser
loaded = perf_counter()
Sanitiser(key=b"k").value({"session_id": "x", "prompt": "please fix the login page " * 8})
used = perf_counter()
print((loaded - began) * 1000, (used - loaded) * 1000)
"""


def best(work: Callable[[], object], runs: int = RUNS) -> float:
    """The shortest CPU time of several runs, in seconds."""
    times = []
    for _ in range(runs):
        began = process_time()
        work()
        times.append(process_time() - began)
    return min(times)


def ordinary() -> dict[str, str]:
    """Texts as assistants see them: code, prose, logs, documents.

    A tenth of our own code is the sanitiser, full of words for secrets; that of Python is not.
    """
    library = "\n".join(
        p.read_text(errors="replace") for p in sorted(Path(os.__file__).parent.glob("*.py"))
    )
    code = "\n".join(p.read_text() for p in sorted((ROOT / "src").rglob("*.py")))
    prose = "\n".join(p.read_text() for p in sorted((ROOT / "docs").rglob("*.md")))
    log = "".join(
        f"2026-11-16T15:31:{n % 60:02d}Z INFO [worker-{n % 8}] job {n:08d} done in {n % 97} ms\n"
        for n in range(14_000)
    )
    rows = [
        {"id": n, "name": f"item {n}", "path": f"src/a{n}.py", "ok": True} for n in range(16_000)
    ]
    return {
        "code": code[: 2 * MEGABYTE],
        "library": library[: 2 * MEGABYTE],
        "prose": prose[:MEGABYTE],
        "log": log,
        "JSON": json.dumps(rows),
    }


def hostile() -> list[str]:
    """Single characters, the prefixes of all rules, and the words that others look for."""
    prefixes = {prefix for row in TOKENS for prefix in row[2]}
    words = (
        "password=", "password: ", "token=", "secret ", "Authorization: ", "Bearer ", "Cookie: a=",
        "://a:", "a@", "a@b.", "1.", "1.2.3.4 ", "+1", "-----BEGIN ", "/home/", "0x", "eyJ.",
        "-----BEGIN RSA PRIVATE KEY-----", "kind: Secret\n", "--password ", "4111 ", "00:",
        "mysql -p", "openssl -k", "echo a | sudo ", "sudo -S <<<", "net use ", "jdbc:oracle:a:a/",
        "login a pass", "password for a is ", "backup codes: ", "login: a / ", "auth('a', ",
        "a_key 12345678901234567890", "?code=", "/bot123456789:A", "Authorization: Digest a=",
        "password').fill('", "mnemonic: abc abc ", "identified by ", "--auth a:",
        "|password|", ",password,\n", "a,password\n1,2\n", "insert into a (b) values ", "Secret ",
        "INSERT INTO a (password) VALUES ('b'),", "('b'),", "chpasswd\n", "1aB2cD3eF", "1aB2cD3 ",
        "cat auth\n", "user / ", "account a / ", "$argon2id$", "AB1CD",
        "accounts: ['0x", "snmpwalk ", "lftp -u a,", "client('a',", "key abcd efgh ", "pw to ",
        "'abcdef'.equals(", "[REDACTED_A]'\n'", "mot de passe ", "secret 0 ", "a_pass  ", "pin | `",
        "a1 ", "login abcdef1 ", "abc-def-ghi-", "pin ", "code is ", "2fa ", "seed ",
        "words ", "1234 is your ", "key ab12 cd34 ab12 ", "oathtool ", "snmp community ",
        "key = {0x12, ",
    )  # fmt: skip
    return [*map(chr, range(32, 127)), "\n", "\t", "é", *sorted(prefixes), *words]


def main() -> None:
    """Measure and print."""
    out = sys.stdout.write
    clean = Sanitiser(key=b"k")
    for name, text in ordinary().items():
        rate = len(text) / best(lambda text=text: clean.text(text)) / MEGABYTE  # type: ignore[misc]
        out(f"{name:12} {rate:8.1f} MB/s\n")
    prompt = ordinary()["prose"][:4096]
    out(f"{'4 KB prompt':12} {best(lambda: clean.text(prompt), 20) * 1000:8.3f} ms\n")
    times = {
        part: best(lambda part=part: clean.text(part * (MEGABYTE // len(part))), 1)  # type: ignore[misc]
        for part in hostile()
    }
    worst = sorted(times, key=times.__getitem__, reverse=True)[:5]
    shown = ", ".join(f"{part!r} {times[part] * 1000:.0f} ms" for part in worst)
    out(f"1 MB of the same, {len(times)} texts; the slowest: {shown}\n")
    # An installed package is compiled.
    environment = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    program = [sys.executable, "-c", FIRST_USE]
    firsts = [
        tuple(map(float, subprocess.check_output(program, env=environment).split()))
        for _ in range(7)
    ]
    loading, using = (min(each[n] for each in firsts) for n in (0, 1))
    out(f"a hook's first use: {loading:.1f} ms to load, {using:.1f} ms for a prompt\n")


if __name__ == "__main__":
    main()

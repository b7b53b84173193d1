"""Write lines.jsonl: every context of found.txt and clean.txt, filled with made-up values, labelled as it is filled.

python -m proof.corpus.blind.write          writes the file and prints the counts
python -m proof.corpus.blind.write --check  only checks the file that is there
"""

# ruff: noqa: D103, E501, SIM905, T201 - a script that prints a table

from __future__ import annotations

import base64
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from proof.corpus.blind import values

Line = dict[str, Any]
HERE = Path(__file__).parent
SLOT = re.compile(r"«(\w+)»|‹(\w+)›")
KINDS = set("code log json diff lockfile prose shell yaml env url other".split())
EACH = 15  # lines at least per category
TRAP = 34  # lines at least per trap
GENERIC = 190

# category: (slot, variable name, service) for the categories that also take the common contexts
TOKENS = {
    "aws_access_key": ("aws", "AWS_ACCESS_KEY_ID", "aws"),
    "bedrock_key": ("bedrock", "AWS_BEARER_TOKEN_BEDROCK", "bedrock"),
    "anthropic_key": ("anthropic", "ANTHROPIC_API_KEY", "anthropic"),
    "openai_key": ("openai", "OPENAI_API_KEY", "openai"),
    "github_token": ("github", "GH_TOKEN", "github"),
    "gitlab_token": ("gitlab", "GITLAB_TOKEN", "gitlab"),
    "gcp_api_key": ("gcp", "GOOGLE_MAPS_KEY", "maps"),
    "azure_secret": ("azure", "ARM_CLIENT_SECRET", "azure"),
    "slack_token": ("slack", "SLACK_TOKEN", "slack"),
    "stripe_key": ("stripe", "STRIPE_SECRET_KEY", "stripe"),
    "twilio_key": ("twilio", "TWILIO_API_KEY", "twilio"),
    "sendgrid_key": ("sendgrid", "SENDGRID_API_KEY", "sendgrid"),
    "npm_token": ("npm", "NPM_TOKEN", "npm"),
    "pypi_token": ("pypi", "TWINE_PASSWORD", "pypi"),
    "huggingface_token": ("hf", "HF_TOKEN", "huggingface"),
    "databricks_token": ("databricks", "DATABRICKS_TOKEN", "databricks"),
    "digitalocean_token": ("do", "DIGITALOCEAN_TOKEN", "digitalocean"),
    "vault_token": ("vault", "VAULT_TOKEN", "vault"),
    "terraform_token": ("tf", "TFE_TOKEN", "terraform"),
    "doppler_token": ("doppler", "DOPPLER_TOKEN", "doppler"),
    "fly_token": ("fly", "FLY_API_TOKEN", "fly"),
    "grafana_token": ("grafana", "GRAFANA_TOKEN", "grafana"),
    "postman_key": ("postman", "POSTMAN_API_KEY", "postman"),
    "pulumi_token": ("pulumi", "PULUMI_ACCESS_TOKEN", "pulumi"),
    "sentry_token": ("sentry", "SENTRY_AUTH_TOKEN", "sentry"),
    "shopify_token": ("shopify", "SHOPIFY_TOKEN", "shopify"),
    "linear_key": ("linear", "LINEAR_API_KEY", "linear"),
    "notion_token": ("notion", "NOTION_TOKEN", "notion"),
    "perplexity_key": ("pplx", "PERPLEXITY_API_KEY", "perplexity"),
    "heroku_key": ("heroku", "HEROKU_API_KEY", "heroku"),
    "age_key": ("age", "SOPS_AGE_KEY", "age"),
    "jwt": ("jwt", "ID_TOKEN", "auth"),
}


def contexts(name: str) -> dict[str, list[tuple[str, str]]]:
    out: dict[str, list[tuple[str, str]]] = {}
    section: list[tuple[str, str]] = []
    for line in (HERE / name).read_text(encoding="utf-8").split("\n"):
        if line.startswith("== "):
            section = out.setdefault(line[3:].strip(), [])
        elif line and not line.startswith("# "):
            kind, text = line.split(": ", 1)
            assert kind in KINDS, line
            section.append((kind, text.replace("⏎", "\n")))
    return out


def fill(kind: str, text: str, token: tuple[str, str, str] | None = None) -> Line:
    slot, variable, service = token or ("", "", "")
    found: list[dict[str, int | str]] = []
    out, at = "", 0
    for m in SLOT.finditer(text):
        out += text[at : m.start()]
        at = m.end()
        if m[2]:
            value = {"K": variable, "S": service}.get(m[2]) or values.CLEAN[m[2]]()
            out += value
            continue
        category, make = values.LABELLED[slot if m[1] == "T" else m[1]]
        value = make()
        found.append({"start": len(out), "end": len(out) + len(value), "category": category})
        out += value
    return {"text": out + text[at:], "found": found, "kind": kind}


def build() -> list[Line]:
    found, clean = contexts("found.txt"), contexts("clean.txt")
    lines: list[Line] = []
    pool, turn = found.pop("pool"), 0
    for category, templates in found.items():
        token = TOKENS.get(category)
        want = {"generic_secret": GENERIC, "mixed": 24}.get(category, max(EACH, len(templates)))
        made = [fill(k, t, token) for k, t in templates]
        while (
            token and len(made) < EACH + 2
        ):  # the next common contexts, so that each is used with several formats
            made.append(fill(*pool[turn % len(pool)], token))
            turn += 1
        at = 0
        while len(made) < want:
            made.append(fill(*templates[at % len(templates)], token))
            at += 1
        lines += made
    for trap, templates in clean.items():
        made, at = [], 0
        texts: set[str] = set()
        while at < 6 * len(templates) and (at < len(templates) or len(made) < TRAP):
            line = fill(*templates[at % len(templates)])
            at += 1
            if line["text"] not in texts:
                texts.add(line["text"])
                made.append({**line, "trap": trap})
        lines += made
    values.R.shuffle(lines)
    return lines


def check(lines: list[Line]) -> None:
    texts = [x["text"] for x in lines]
    assert len(set(texts)) == len(texts), [t for t, n in Counter(texts).items() if n > 1]
    for x in lines:
        end = 0
        for f in x["found"]:
            assert end <= f["start"] < f["end"] <= len(x["text"]), x
            value, end = x["text"][f["start"] : f["end"]], f["end"]
            assert value == value.strip(), x
            if f["category"] == "generic_secret":
                assert values.entropy(value) >= 3.5, x
    spans = Counter(f["category"] for x in lines for f in x["found"])
    rows = Counter(c for x in lines for c in {f["category"] for f in x["found"]})
    traps = Counter(x["trap"] for x in lines if not x["found"])
    for c in sorted({c for c, _ in values.LABELLED.values()}):
        print(f"{c:24}{rows[c]:5} lines {spans[c]:5} spans")
        assert rows[c] >= 12, c
    for t, n in sorted(traps.items()):
        print(f"clean: {t:24}{n:5}")
    held = sum(bool(x["found"]) for x in lines)
    print(dict(Counter(x["kind"] for x in lines)))
    print(
        f"{len(lines)} lines, {held} with something to find ({held / len(lines):.1%}), {sum(spans.values())} spans"
    )


def main() -> None:
    path = HERE / "lines.jsonl"
    if "--check" not in sys.argv:
        with path.open("w", encoding="utf-8") as out:
            for x in build():
                row = {
                    "text64": base64.b64encode(x["text"].encode()).decode(),
                    **{k: v for k, v in x.items() if k != "text"},
                }
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
    rows = [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
    check([{**r, "text": base64.b64decode(r["text64"]).decode()} for r in rows])


if __name__ == "__main__":
    main()

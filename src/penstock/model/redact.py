"""The redaction gate: what may be stored or shown of a text that may hold secrets."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from msgspec.json import decode, encode

_MARK = "[REDACTED_"


class Rule(NamedTuple):
    """A kind of secret: where to look at all, what to look for, what to put in its place."""

    needles: tuple[str, ...]
    pattern: str
    replace: Callable[[re.Match[str]], str]


def mark(kind: str) -> str:
    """Return what stands in place of a secret of this kind."""
    return f"{_MARK}{kind}]"


# An escaped line break before a secret, as in a repr, ends in a letter that starts no word.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"

_TOKENS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("ANTHROPIC_KEY", ("sk-ant-",), r"sk-ant-[\w-]{16,512}"),
    ("OPENAI_KEY", ("sk-",), r"sk-(?:(?:proj|svcacct|admin)-[\w-]{16,512}|[A-Za-z0-9]{20,128})"),
    (
        "AWS_ACCESS_KEY",
        ("AKIA", "ASIA", "ABIA", "ACCA", "A3T"),
        r"A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9])[A-Z2-7]{16}\b",
    ),
    ("AWS_BEDROCK_KEY", ("ABSK",), r"ABSK[A-Za-z0-9+/]{40,512}={0,2}"),
    ("GITHUB_TOKEN", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    ("GITHUB_TOKEN", ("github_pat_",), r"github_pat_\w{22,255}"),
    ("GITLAB_TOKEN", ("gl",), r"gl(?:pat|dt|rt|ptt|cbt|ft|imt|agent|oas|soat|ffct)-[\w.-]{20,255}"),
    ("SLACK_TOKEN", ("xox", "xapp-"), r"(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,255}"),
    (
        "SLACK_WEBHOOK",
        ("hooks.slack.com",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{20,255}",
    ),
    (
        "STRIPE_KEY",
        ("k_test_", "k_live_", "k_prod_"),
        r"[sr]k_(?:test|live|prod)_[A-Za-z0-9]{10,255}",
    ),
    ("WEBHOOK_SECRET", ("whsec_",), r"whsec_[A-Za-z0-9+/=]{16,255}"),
    ("GCP_API_KEY", ("AIza",), r"AIza[\w-]{35}"),
    ("GCP_TOKEN", ("ya29.",), r"ya29\.[\w-]{20,1024}"),
    ("AZURE_SECRET", ("Q~",), r"[\w.~-]{3}[0-9]Q~[\w.~-]{31,34}"),
    ("TWILIO_KEY", ("SK",), r"SK[0-9a-f]{32}\b"),
    ("SENDGRID_KEY", ("SG.",), r"SG\.[\w-]{16,64}\.[\w-]{16,128}"),
    ("NPM_TOKEN", ("npm_",), r"npm_[A-Za-z0-9]{36,64}"),
    ("PYPI_TOKEN", ("pypi-AgE",), r"pypi-AgE[\w-]{16,1024}"),
    ("HUGGINGFACE_TOKEN", ("hf_", "api_org_"), r"(?:hf_|api_org_)[A-Za-z0-9]{34,64}"),
    ("DATABRICKS_TOKEN", ("dapi",), r"dapi[0-9a-f]{32}(?:-[0-9])?\b"),
    ("DIGITALOCEAN_TOKEN", ("_v1_",), r"do[oprt]_v1_[0-9a-f]{64}"),
    ("VAULT_TOKEN", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[\w-]{20,512}"),
    ("TERRAFORM_TOKEN", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,128}"),
    ("DOPPLER_TOKEN", ("dp.",), r"dp\.[a-z]{2,5}\.[A-Za-z0-9]{40,64}"),
    ("FLY_TOKEN", ("fo1_", "fm1", "fm2_"), r"f(?:o1_|m1[ar]_|m2_)[\w+/=-]{32,1024}"),
    ("GRAFANA_TOKEN", ("glsa_",), r"glsa_\w{32,64}"),
    ("POSTMAN_KEY", ("PMAK-",), r"PMAK-[0-9a-f-]{40,80}"),
    ("PULUMI_TOKEN", ("pul-",), r"pul-[0-9a-f]{40}\b"),
    ("SENTRY_TOKEN", ("sntry",), r"sntry[us]_[\w+/=-]{32,512}"),
    ("SHOPIFY_TOKEN", ("shp",), r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ("LINEAR_KEY", ("lin_api_",), r"lin_api_[A-Za-z0-9]{32,64}"),
    ("NOTION_TOKEN", ("ntn_",), r"ntn_[A-Za-z0-9]{40,64}"),
    ("PERPLEXITY_KEY", ("pplx-",), r"pplx-[A-Za-z0-9]{40,64}"),
    ("HEROKU_KEY", ("HRKU-AA",), r"HRKU-AA[\w-]{32,128}"),
    ("AGE_KEY", ("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ("JWT", ("eyJ",), r"eyJ[\w-]{8,8192}\.[\w-]{8,16384}(?:\.[\w-]{0,4096})?"),
)

_PEM_EDGE = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM = (
    rf"-----BEGIN {_PEM_EDGE}"
    rf"(?:(?:[^-]|-(?!----)){{0,65536}}+-----END {_PEM_EDGE}|[A-Za-z0-9+/=\s\\]{{0,65536}}+)"
)

_HEADER_GAP = r"""\\{0,3}["']?[ \t]{0,4}+[:=,][ \t]{0,4}+(?:b?\\{0,3}["'])?"""
_AUTHORIZATION = (
    rf"(?i)(?P<name>(?:proxy-)?authorization{_HEADER_GAP})(?!\[REDACTED_)"
    r"(?:(?:bearer|basic|token|apikey)[ \t]{1,4}+[^\s\"'\\,]{1,8192}+|[^\r\n\"'\\]{1,8192}+)"
)
_BEARER = r"(?i)(?P<name>\bbearer[ \t]{1,4})[\w.~+/=-]{16,8192}"
_COOKIE = rf"(?i)(?P<name>(?:set-)?cookie{_HEADER_GAP})[^\s=;\"'\\]{{1,256}}=[^\r\n\"'\\]{{1,8192}}"

_URL = r"(?P<name>(?<=://)[^\s/:@\"'<>]{0,256}:)(?P<value>[^\s/\"'<>]{1,512})(?=@)"

_DOMAIN = r"[\w-]{1,63}(?:\.[\w-]{1,63}){0,8}\.[^\W\d_]{2,24}"

# `user:password@host` without a scheme; not a version or a digest, which packages are named by.
_CREDENTIALS = (
    r"(?<![\w.%+/-])(?P<name>[\w.%+-]{1,64}:)(?P<value>[^\s/:\"'<>\\]{1,256})"
    r"(?=@(?!sha\d{1,3}:|v?\d+(?:\.\d+){0,2}(?![.\w]))(?P<host>[\w.-]{1,256}|\[))"
)

# What is glued to an address goes with it, or the next pass would find an address in the rest.
_EMAIL = (
    r"(?:(?<![\w.%+-])|(?<=\\[nrt]))(?P<local>[\w.%+-]{1,256}+)"
    rf"@{_DOMAIN}"
    r"(?P<glued>(?:[\w%+@-][\w.%+@-]{0,4096}+)?)"
)
_ENCODED_EMAIL = rf"(?<![\w.%+-])(?:[\w.+-]|%(?!40)[0-9A-Fa-f]{{2}}){{1,256}}+%40{_DOMAIN}"

_WORDS = (
    "password", "passwd", "passphrase", "pwd", "_pass", "-pass", "secret", "api_key", "api-key",
    "apikey", "access_key", "access-key", "accesskey", "private_key", "private-key", "privatekey",
    "token", "credential",
)  # fmt: skip
_ASSIGNMENT = r"""(?ix)
    (?P<word>passwords?|passwd|passphrase|pwd|(?<=[_-])pass|secret(?:[_-]?(?:access[_-]?)?key)?
        |api[_-]?key|access[_-]?key|private[_-]?key|token|credentials?)
    (?P<gap>\\{0,3}["']?[ \t]{0,4}+(?:=>|:=|==?|:)[ \t]{0,4}+)
    (?:
        (?P<quote>b?(?P<q>["']))(?P<quoted>(?:(?!(?P=q))[^\\\r\n]|\\.){1,2048}+)(?=(?P=q))
        |(?P<escape>\\{1,3}["'])(?P<escaped>[^"'\\\r\n]{1,2048}+)
        |(?P<bare>[^\s"'\\,;&<>\[{(][^\s"'\\,;&<>]{2,2048}+)
    )
"""

_ORDINARY = {
    "a", "an", "and", "any", "are", "as", "at", "bool", "bytes", "cannot", "could", "does",
    "empty", "error", "expected", "expired", "failed", "false", "field", "for", "found",
    "from", "has", "have", "in", "incorrect", "int", "invalid", "is", "it", "length",
    "malformed", "may", "missing", "mismatch", "must", "nil", "no", "none", "not", "null",
    "object", "of", "on", "optional", "or", "public", "rejected", "required", "revoked",
    "should", "str", "string", "that", "the", "this", "to", "too", "true", "type",
    "undefined", "unknown", "unsupported", "value", "was", "with", "wrong",
}  # fmt: skip
_PLACEHOLDER = (
    r"\$[A-Z_][A-Z0-9_]*|\$[({][\w.:-]*[)}]?|%\w+%|%\(\w+\)?s?"
    r"|\{{1,2}[\w. ]*\}{0,2}|<[\w -]*>|\[[\w -]*\]|[*x.•]+|your[_-].*"
)
_OWN_NAME = r"(?:_?|(?:\w+\.){1,16}\w*)(?:password|passwd|passphrase|pwd|secret|api_?key|token)"
_CODE = r"(?:self|cls)\.[\w.]*|(?:[A-Za-z_]\w*\.){0,16}[A-Za-z_]\w*[(\[].*"


def _kind(word: str) -> str:
    word = word.lower()
    if word.startswith("pass") or word == "pwd":
        return "PASSWORD"
    if word.startswith("private"):
        return "PRIVATE_KEY"
    if word.startswith(("api", "access")):
        return "API_KEY"
    return "TOKEN" if word == "token" else "SECRET"


def _is_harmless(value: str) -> bool:
    """Whether a value only stands for one: a placeholder, a variable's name, a word of prose."""
    return (
        len(value) < 3
        or value.lower().rstrip(".:!?") in _ORDINARY
        or _is_placeholder(value)
        or re.fullmatch(_OWN_NAME, value) is not None
    )


def _is_placeholder(value: str) -> bool:
    return value.startswith(_MARK) or re.fullmatch(_PLACEHOLDER, value) is not None


def _is_no_secret(word: str, value: str) -> bool:
    """Whether an unquoted value is code, a working directory or a number of tokens."""
    return (
        (word == "pwd" and value.startswith(("/", "~")))
        or (word == "token" and value.isdigit() and len(value) < 6)
        or re.fullmatch(_CODE, value) is not None
    )


def _assignment(found: re.Match[str]) -> str:
    word, gap = found["word"], found["gap"]
    opening = found["quote"] or found["escape"] or ""
    value: str = found["quoted"] or found["escaped"] or found["bare"]
    closing = ""
    if found["bare"]:
        value = value.rstrip(")]}")
        closing = found["bare"][len(value) :]
        if _is_no_secret(word.lower(), found["bare"]):
            return found[0]
    if _is_harmless(value):
        return found[0]
    put = mark(_kind(word))
    if found["bare"] and gap.startswith('"'):
        put = f'"{put}"'
    return f"{word}{gap}{opening}{put}{closing}"


def _url(found: re.Match[str]) -> str:
    # The place alone makes it a password: however short it is, and whatever word it is.
    return found[0] if _is_placeholder(found["value"]) else found["name"] + mark("PASSWORD")


def _credentials(found: re.Match[str]) -> str:
    address = f"{found['value']}@{(found['host'] or '').rstrip('.-')}"
    return found[0] if re.fullmatch(_EMAIL, address) else _url(found)


def _email(found: re.Match[str]) -> str:
    is_repository = found["local"] == "git" and not found["glued"]
    return found[0] if is_repository else mark("EMAIL")


def _always(kind: str) -> Callable[[re.Match[str]], str]:
    return lambda _: mark(kind)


def _after_name(kind: str) -> Callable[[re.Match[str]], str]:
    return lambda found: found["name"] + mark(kind)


RULES: tuple[Rule, ...] = (
    Rule(("-----begin",), _PEM, _always("PRIVATE_KEY")),
    *(
        Rule(tuple(n.lower() for n in needles), _START + pattern, _always(kind))
        for kind, needles, pattern in _TOKENS
    ),
    Rule(("authorization",), _AUTHORIZATION, _after_name("AUTHORIZATION")),
    Rule(("bearer",), _BEARER, _after_name("TOKEN")),
    Rule(("cookie",), _COOKIE, _after_name("COOKIE")),
    Rule(("://",), _URL, _url),
    Rule(_WORDS, _ASSIGNMENT, _assignment),
    Rule(("@",), _CREDENTIALS, _credentials),
    Rule(("@",), _EMAIL, _email),
    Rule(("%40",), _ENCODED_EMAIL, _always("EMAIL")),
)


LIMIT = 65_536

_SHORT = 40
_ANY_NEEDLE = re.compile("|".join(re.escape(each) for rule in RULES for each in rule.needles))

_NOTE = re.compile(r"\n\[(\d{1,12}) characters dropped\]\Z")
_NOTE_ROOM = 64
_LONGEST_TOKEN = 4_096
_TOKEN_CHARACTERS = (
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&*+-./:=?@^_|~[]\\"
)
_PASSES = 8


_added: list[Callable[[str], str]] = []


def add_rule(rule: Callable[[str], str]) -> None:
    """Have a rule of an extension look at every text, after our own, in this process."""
    if rule not in _added:
        _added.append(rule)


def drop_rules() -> None:
    """Have our own rules alone look at texts again, as tests do after one another."""
    _added.clear()


def rules_added() -> tuple[Callable[[str], str], ...]:
    """The rules beside our own that look at every text."""
    return tuple(_added)


def redact(text: str) -> str:
    """Replace secrets and e-mail addresses by `[REDACTED_<TYPE>]`, and cut what is over 64 KiB.

    `redact("token=abc123def")` is `"token=[REDACTED_TOKEN]"`; what is redacted stays as it is.
    """
    return _until_clean(_storable(text), lambda text: _replaced(_shortened(text)))


def redact_whole(text: str) -> str:
    """The same of a text that is kept whole, however long it is."""
    return _until_clean(text, _replaced)


def _until_clean(text: str, replace: Callable[[str], str]) -> str:
    for _ in range(_PASSES):
        cleaned = replace(text)
        if cleaned == text:
            return text
        text = cleaned
    # A text that keeps changing cannot be shown to be clean, so none of it is kept.
    return mark("TEXT")


def redact_document(text: str) -> str:
    """A JSON document with the secrets in its texts and names replaced; it stays a document."""
    return encode(_clean(decode(text))).decode()


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_clean(each) for each in value]
    if isinstance(value, dict):
        return {redact(name): _clean(each) for name, each in value.items()}
    return value


def redacted(text: str | None, limit: int) -> str | None:
    """What may be kept of somebody's words, if there are any: redacted, then cut."""
    return None if text is None else redact(text)[:limit]


def _storable(text: str) -> str:
    """Half a surrogate pair has no UTF-8, and PostgreSQL holds no NUL.

    One such text would fail a whole batch of writes.
    """
    text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _replaced(text: str) -> str:
    lowered = text.lower()
    # A word or two, like the names in an object, is looked through once instead of once a needle.
    if len(text) > _SHORT or _ANY_NEEDLE.search(lowered):
        for rule in RULES:
            if any(needle in lowered for needle in rule.needles):
                text = _compiled(rule.pattern).sub(rule.replace, text)
    for added in _added:
        text = added(text)
    return text


def _shortened(text: str) -> str:
    if len(text) <= LIMIT:
        return text
    note = _NOTE.search(text, len(text) - _NOTE_ROOM)
    body = text[: note.start()] if note else text
    kept = _without_half_token(body[: LIMIT - _NOTE_ROOM])
    dropped = len(body) - len(kept) + (int(note[1]) if note else 0)
    return f"{kept}\n[{dropped} characters dropped]"


def _without_half_token(text: str) -> str:
    # Half a secret at the cut fits no rule, and half of it is too much.
    tail = text[-_LONGEST_TOKEN:].rstrip(_TOKEN_CHARACTERS)
    return text[:-_LONGEST_TOKEN] + tail if tail else text


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_PLACE = re.compile(r"(\[[^\]]*\]|[^:/,]*)(:\d*)?(,(\[[^\]]*\]|[^:/,]*)(:\d*)?)*(/|$)")
_PLAIN = re.compile(r"[:/]")


def without_password(url: str) -> str:
    """A URL without its secrets, whether or not it is written correctly; a path as it is."""
    base, mark, query = url.partition("?")
    scheme, separator, rest = base.partition("://")
    if not separator:
        return url
    account, at, place = ("", "", rest) if rest.startswith("/") else rest.rpartition("@")
    if not at and ("@" in query.partition("=")[0] or not _PLACE.match(rest)):
        # A password whose special characters end what was meant as the account.
        return f"{scheme}{separator}{_PLAIN.split(rest, maxsplit=1)[0]}:***"
    user, colon, _ = account.partition(":")
    hidden = f"{user}:***" if colon else user
    return f"{scheme}{separator}{hidden}{at}{place}{_harmless(mark, query)}"


def _harmless(mark: str, query: str) -> str:
    given = parse_qsl(query, keep_blank_values=True)
    if not any("password" in name for name, _ in given):
        return f"{mark}{query}"
    kept = [(name, value) for name, value in given if "password" not in name]
    return f"{mark}{urlencode(kept)}" if kept else ""

"""What rules of form cannot know: names, organisations, addresses, secrets told in a sentence.

It looks at text that the sanitiser has cleaned already, and goes by context: what follows `my name
is`, what stands before `GmbH`, a number and a street, what `the password is`. It would rather take
out a word too many of a greeting than leave a name, but leaves names of tools and of code alone.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from penstock.apps.recorder.detect_words import FIRST_NAMES, NO_SECRET, NOBODY

LONGEST_TEXT = 200_000
"""A longer text is looked at in pieces of this size, which overlap."""
OVERLAP = 400

NAME = "name"
ORGANISATION = "organisation"
ADDRESS = "address"
SECRET = "secret"


class Detected(NamedTuple):
    """Something that must not stay: where it is, what it is, which rule says so, how surely."""

    start: int
    end: int
    category: str
    rule_id: str
    confidence: float


class Rule(NamedTuple):
    """A context: what is sought is its group `it`; without any of the words it is not tried."""

    category: str
    rule_id: str
    confidence: float
    needles: tuple[str, ...]
    pattern: re.Pattern[str]


_UPPER = r"[A-ZÀ-ÖØ-Þ]"
_LOWER = r"[a-zß-öø-ÿ]"
_PART = rf"{_UPPER}(?:{_LOWER}|['’]{_UPPER})+(?:-{_UPPER}{_LOWER}+)?"
_INITIAL = rf"{_UPPER}\."
_PARTICLE = r"(?:van|von|de|der|den|di|da|del|la|le|el|bin|ibn|al|zu|ter|ten|dos|du)"
_FULL = (
    rf"{_PART}(?:[ \t]+(?:{_INITIAL}|{_PARTICLE}(?:[ \t]+{_PARTICLE})?))?(?:[ \t]+{_PART}){{1,2}}"
)
_ANY = rf"{_PART}(?:(?:[ \t]+(?:{_INITIAL}|{_PARTICLE}))?[ \t]+{_PART}){{0,2}}"


def _rule(
    category: str, rule_id: str, confidence: float, needles: tuple[str, ...], pattern: str
) -> Rule:
    return Rule(category, rule_id, confidence, needles, re.compile(pattern))


RULES = (
    _rule(
        NAME,
        "introduced",
        0.95,
        (
            "name is",
            "name's",
            "heiße",
            "i am",
            "i'm",
            "this is",
            "ich bin",
        ),
        rf"(?i:\b(?:my (?:full )?name(?: is|'s)|ich heiße|mein name ist)[ \t]+)"
        rf"(?P<it>{_ANY})",
    ),
    _rule(
        NAME,
        "speaking",
        0.85,
        (
            "i am",
            "i'm",
            "this is",
            "ich bin",
            "here is",
        ),
        rf"(?i:\b(?:i am|i'm|this is|ich bin)[ \t]+)(?P<it>{_FULL})\b",
    ),
    _rule(
        NAME,
        "signed",
        0.97,
        (
            *(
                "-by:",
                "author:",
                "committer:",
                "reviewer:",
                "assignee:",
                "owner:",
            ),
            *(
                "contact:",
                "from:",
                "name:",
                "cc:",
            ),
        ),
        rf"(?im:^[ \t>*-]*(?:signed-off-by|co-authored-by|reviewed-by|acked-by"
        rf"|reported-by|tested-by|author|committer|reviewer|assignee|owner|contact"
        rf"(?: person)?|from|cc|full name|customer name|name)[ \t]*:[ \t]*)"
        rf"(?P<it>{_FULL})",
    ),
    _rule(
        NAME,
        "titled",
        0.93,
        (
            "mr",
            "mrs",
            "ms",
            "dr",
            "prof",
            "herr",
            "frau",
            "mme",
            "señor",
        ),
        rf"\b(?:Mr|Mrs|Ms|Dr|Prof|Herrn?|Frau|Mme|Señora?)\.?[ \t]+(?:(?:Dr"
        rf"|Prof)\.[ \t]+)?(?P<it>{_ANY})",
    ),
    _rule(
        NAME,
        "greeted",
        0.85,
        (
            "dear ",
            "hi ",
            "hello ",
            "hey ",
            "hallo ",
            "liebe",
        ),
        rf"(?im:^[ \t]*(?:dear|hi|hello|hey|hallo|liebe[r]?)[ \t]+)(?P<it>{_ANY})"
        rf"(?=[ \t]*[,!\n—-])",
    ),
    _rule(
        NAME,
        "closing",
        0.9,
        (
            *(
                "regards",
                "cheers",
                "best,",
                "sincerely",
                "grüße",
                "grüßen",
            ),
            *(
                "thanks,",
                "yours",
            ),
        ),
        rf"(?i:\b(?:regards|cheers|best|sincerely|grü(?:ße|ßen)|thanks|yours"
        rf"(?: truly)?)[ \t]*,?[ \t]*\n+[ \t]*)(?P<it>{_ANY})(?=[ \t]*(?:\n|$))",
    ),
    _rule(
        NAME,
        "mentioned",
        0.88,
        (
            *(
                "colleague",
                "manager",
                "boss",
                "coworker",
                "client",
                "customer",
            ),
            *(
                "patient",
                "employee",
                "tenant",
                "user ",
                "called ",
                "named ",
                "met ",
            ),
            *(
                "ask ",
                "asked ",
                "told ",
                "from ",
                "with ",
            ),
        ),
        rf"(?i:\b(?:(?:my|our|their|his|her|the)[ \t]+(?:colleague|manager|boss"
        rf"|co-?worker|patient|employee|teammate|cto|ceo|landlord|neighbou?r|wife"
        rf"|husband|son|daughter|doctor|lawyer)|(?:a|the) (?:person|user|customer|guy"
        rf"|woman|man|patient|employee) (?:called|named))[ \t,]+)(?P<it>{_ANY})",
    ),
    _rule(
        ORGANISATION,
        "legal_form",
        0.93,
        (
            *(
                "inc",
                "llc",
                "ltd",
                "gmbh",
                "corp",
                "plc",
                " ag",
                "s.a.",
                "b.v.",
            ),
            *(
                "pty",
                "kg",
                "llp",
                "s.r.l",
                "limited",
                " se",
                " oy",
                " ab",
                "e.v.",
            ),
        ),
        rf"\b(?P<it>(?:(?:{_UPPER}[\w&'’-]*|&|and|und)[ \t]+){{1,4}}(?:Inc|LLC|L\.L\.C"
        rf"|Ltd|GmbH(?:[ \t]*&[ \t]*Co\.?[ \t]*KG)?|Corp(?:oration)?|PLC|AG|S\.A|B\.V"
        rf"|Pty(?:[ \t]+Ltd)?|KG|LLP|S\.r\.l|Limited|SE|Oy|AB|e\.V)\b\.?)",
    ),
    _rule(
        ORGANISATION,
        "employer",
        0.85,
        (
            *(
                "work at",
                "work for",
                "works at",
                "works for",
                "employed",
            ),
            *(
                "working at",
                "working for",
                "our client",
                "our customer",
            ),
            *("arbeite bei",),
        ),
        rf"(?i:\b(?:i|we|he|she|they)(?:'m| am|'re| are| is)?[ \t]+(?:currently[ \t]+)?"
        rf"(?:work(?:s|ing)?|employed)[ \t]+(?:at|for|by)[ \t]+|\barbeite bei[ \t]+"
        rf"|\bour (?:client|customer)[ \t,]+)(?P<it>{_UPPER}[\w&'’-]+(?:[ \t]+"
        rf"(?:{_UPPER}[\w&'’-]+|&|of|and)){{0,3}})",
    ),
    _rule(
        ADDRESS,
        "street",
        0.95,
        (
            *(
                "street",
                "st.",
                " st",
                "avenue",
                "ave",
                "road",
                " rd",
                "lane",
            ),
            *(
                "drive",
                " dr",
                "boulevard",
                "blvd",
                "court",
                "way",
                "square",
                "place",
            ),
            *(
                "terrace",
                "highway",
            ),
        ),
        rf"\b(?P<it>\d{{1,5}}[A-Za-z]?[ \t]+(?:[NSEW]\.?[ \t]+)?(?:(?!(?:The|On|In|At"
        rf"|By|To|And|Is|Are|Of|For)\b){_UPPER}[\w'’.-]*[ \t]+){{1,4}}(?:Street|St"
        rf"|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Court|Ct|Way|Square|Sq"
        rf"|Place|Pl|Terrace|Highway|Hwy|Parkway|Pkwy|Close|Crescent)\b\.?(?:,?[ \t]+"
        rf"(?:Apt|Apartment|Suite|Ste|Unit|Floor|Fl|\#)\.?[ \t]*[\w-]+)?"
        rf"(?:,[ \t]*{_UPPER}[\w'’. -]{{2,30}})?(?:,?[ \t]+[A-Z]{{2}})?(?:,?[ \t]+"
        rf"(?:\d{{5}}(?:-\d{{4}})?|[A-Z]{{1,2}}\d[A-Z\d]?[ \t]?\d[A-Z]{{2}}))?)",
    ),
    _rule(
        ADDRESS,
        "strasse",
        0.95,
        (
            *(
                "straße",
                "strasse",
                "str.",
                "weg",
                "platz",
                "allee",
                "gasse",
                "ring",
            ),
            *(
                "damm",
                "ufer",
            ),
        ),
        rf"\b(?P<it>{_UPPER}[\wäöüß-]*(?:[ -]{_UPPER}[\wäöüß-]*){{0,2}}(?:[ -]?[Ss]tra"
        rf"(?:ß|ss)e|[ -]?[Ss]tr\.|[ -]?[Ww]eg|[ -]?[Pp]latz|[ -]?[Aa]llee|gasse|damm"
        rf"|ufer)[ \t]+\d{{1,4}}[ \t]?[a-z]?\b(?:,?[ \t]+(?:D-|A-|CH-)?\d{{4,5}}[ \t]"
        rf"+{_UPPER}[\wäöüß -]{{2,30}})?)",
    ),
    _rule(
        ADDRESS,
        "straat",
        0.9,
        (
            *(
                "rue ",
                "via ",
                "calle ",
                "avenida",
                "plaza",
                "straat",
                "laan",
            ),
            *("piazza",),
        ),
        rf"\b(?P<it>(?:\d{{1,4}},?[ \t]+)?(?:rue|Rue|Via|Calle|Avenida|Plaza"
        rf"|Piazza)[ \t]+(?:de[ \t]+(?:la[ \t]+)?|des[ \t]+|du[ \t]+|del[ \t]"
        rf"+)?{_UPPER}[\wà-ÿ'’-]+(?:[ \t]+{_UPPER}[\wà-ÿ'’-]+){{0,3}}(?:,?[ \t]"
        rf"+\d{{1,4}}\b)?(?:,?[ \t]+\d{{4,5}}[ \t]+{_UPPER}[\wà-ÿ-]+)?)",
    ),
    _rule(
        ADDRESS,
        "post_box",
        0.95,
        (
            "box",
            "postfach",
        ),
        r"\b(?P<it>(?:P\.?[ \t]?O\.?[ \t]+Box|Postfach)[ \t]+\d[\d ]{1,8}\d)",
    ),
    _rule(
        ADDRESS,
        "lives",
        0.85,
        (
            *(
                "live at",
                "lives at",
                "address is",
                "wohne in",
                "wohnt in",
            ),
            *("address:",),
        ),
        r"(?i:\b(?:lives? at|(?:my|his|her|home|billing|shipping) address(?: is|:)"
        r"|wohn(?:e|t) in)[ \t]+)(?P<it>(?=[^\n]*\d)[^\n.;]{8,90})",
    ),
    _rule(
        SECRET,
        "told",
        0.93,
        (
            *(
                "password",
                "passwort",
                "passphrase",
                "pin",
                "secret",
                "passcode",
            ),
            *(
                "kennwort",
                "pwd",
                "credential",
                "token",
                "key is",
                "login",
            ),
        ),
        r"(?i:\b(?:pass(?:word|wort|phrase|code)|kennwort|pwd|pin(?: code)?|secret"
        r"(?: word| key)?|api key|token|credentials?)\b(?:[ \t]+(?:for|of|to|on"
        r"|für)[ \t]+[\w./@-]+(?:[ \t]+[\w./@-]+){0,3}?)?[ \t]*(?:is|was|ist|war"
        r"|lautet|are|=|:)[ \t]+(?:set to |now |still |just )?[\"'`«]?)(?P<it>"
        r"(?![\[<$({])[^\s\"'`»,;]{4,80})",
    ),
    _rule(
        SECRET,
        "signed_in_with",
        0.9,
        (
            *(
                "log in with",
                "login with",
                "sign in with",
                "logged in as",
            ),
            *(
                "log in as",
                "username",
            ),
        ),
        r"(?i:\b(?:log[ -]?in|sign[ -]?in|logged in|connect)[ \t]+(?:with|as"
        r"|using)[ \t]+(?:user(?:name)?[ \t]+)?[\"'`]?[\w.@-]+[\"'`]?[ \t]*(?:/|and"
        r"|with|,|:)[ \t]*(?:the )?(?:password[ \t]+)?[\"'`]?)(?P<it>(?![\[<$({])"
        r"(?=\S*(?:\d|[^\w\s]))[^\s\"'`,;]{5,80})",
    ),
)

_BARE = re.compile(
    rf"(?<![\w@/.\\-])(?P<first>{_PART})[ \t]+(?:(?:{_INITIAL}|{_PARTICLE})[ \t]+)?"
    rf"(?P<last>{_PART})(?![\w@(/\\])"
)


def detect(text: str) -> list[Detected]:
    """What must not stay in a text, in order, without overlaps."""
    found: list[Detected] = []
    for begin in range(0, max(1, len(text)), LONGEST_TEXT):
        piece = text[max(0, begin - OVERLAP) : begin + LONGEST_TEXT]
        shift = max(0, begin - OVERLAP)
        found += [
            one._replace(start=one.start + shift, end=one.end + shift) for one in _in_piece(piece)
        ]
    return _apart(found)


def _in_piece(text: str) -> Iterator[Detected]:
    lowered = text.lower()
    for rule in RULES:
        if not any(needle in lowered for needle in rule.needles):
            continue
        for match in rule.pattern.finditer(text):
            start, end = _trimmed(text, *match.span("it"), rule.category)
            if start < end and _is_meant(text[start:end], rule):
                yield Detected(start, end, rule.category, rule.rule_id, rule.confidence)
    for match in _BARE.finditer(text):
        first, last = match["first"].lower(), match["last"].lower()
        if first in FIRST_NAMES and last not in NOBODY and last not in FIRST_NAMES - {"kim"}:
            yield Detected(*match.span(), NAME, "full_name", 0.8)


def _trimmed(text: str, start: int, end: int, category: str) -> tuple[int, int]:
    """What was found without what cannot be part of it."""
    if category == SECRET:
        while end > start and text[end - 1] in ".,;:!?)]}\"'":
            end -= 1
        return start, end
    while end > start and text[end - 1] in " \t,":
        end -= 1
    if category == NAME:
        words = text[start:end].split()
        while words and words[-1].lower() in NOBODY:
            words.pop()
        end = start + len(" ".join(words)) if words else start
    return start, end


def _is_meant(value: str, rule: Rule) -> bool:
    """Whether a value is what it looks like, and not a word of the sentence."""
    if "REDACTED" in value or value.startswith(("[", "<", "$", "{")):
        return False
    if rule.category == SECRET:
        return value.lower() not in NO_SECRET and (
            any(not each.isalpha() for each in value)
            or (value.islower() and len(value) >= 8 and rule.rule_id != "told")
        )
    first = value.split()[0].lower()
    if rule.category == NAME:
        return first not in NOBODY
    return not (rule.rule_id == "employer" and first in NOBODY)


def _apart(found: list[Detected]) -> list[Detected]:
    """Those that do not overlap; the surer and longer ones first."""
    kept: list[Detected] = []
    for one in sorted(found, key=lambda each: (-each.confidence, each.start - each.end)):
        if all(one.end <= other.start or other.end <= one.start for other in kept):
            kept.append(one)
    return sorted(kept)

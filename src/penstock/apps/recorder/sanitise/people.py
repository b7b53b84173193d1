"""People: their mailboxes, and their names beside them."""

from penstock.apps.recorder.sanitise.checks import FILES, WORD
from penstock.apps.recorder.sanitise.pattern import NOWHERE, Found, Pattern

# E-mail

_LOCAL = frozenset(WORD | set(b"._%+-'") | set(range(0x80, 0x100)))
_EMAIL_TRIGGER = (
    r"[A-Za-z0-9_%+\x80-\xff-](?:@|%40)[A-Za-z0-9\x80-\xff][A-Za-z0-9.\x80-\xff-]*"
    r"\.[A-Za-z\x80-\xff]{2}"
)
_DOMAIN = Pattern(r"[A-Za-z0-9\x80-\xff-]+(?:\.[A-Za-z0-9\x80-\xff-]+)+")
_EXAMPLE_DOMAINS = (
    b"example.com", b"example.org", b"example.net", b"example.edu", b"example.co.uk", b"test.com",
    b"domain.com", b"yourdomain.com", b"mydomain.com", b"email.com", b"company.com", b"acme.test",
    b"localhost.localdomain", b"foo.com", b"bar.com", b"foobar.com", b"yourcompany.com",
    b"example.io", b"example.dev", b"sentry.io",
)  # fmt: skip
_EXAMPLE_ENDS = (b".example", b".test", b".invalid", b".localhost", b".local", b".internal")
_NOBODY = (b"noreply", b"no-reply", b"donotreply", b"do-not-reply", b"git")
_DOMAINS_ENDS = frozenset(
    b"""com org net edu gov mil int info biz name pro museum aero coop jobs mobi travel tel asia cat
    post app dev page cloud online site store shop tech space website blog live life world today
    email company solutions services agency studio design digital media network systems software
    technology consulting group team work works global international academy school university
    health care clinic dental law legal finance bank capital fund money tax insurance estate house
    homes land farm garden green energy eco bio earth social club community events news press
    review reviews video photo photos gallery art music film games game play fun xyz top icu vip
    wiki one zone plus ai io co me tv cc ws""".split()
)


_PATH_STARTS = frozenset(bytes((each,)) for each in (*WORD, *b"/~.")) - {b"", b"n"}
_ON_MACHINES = Pattern(
    r"(?i)\b(?:ssh|scp|sftp|rsync|mosh|ssh-copy-id) |(?:message-id|in-reply-to|references):"
)


def email(data: bytes, start: int, __: int) -> Found | None:
    """An address of a person, with all that is glued to it."""
    encoded = data.startswith(b"%40", start + 1)
    at = start + 1
    begin = at
    lowest = max(0, at - 128)
    while begin > lowest and data[begin - 1] in _LOCAL:
        begin -= 1
    begin += len(data[begin:at]) - len(data[begin:at].lstrip(b".%+-'"))
    if data[begin - 1 : begin] == b"\\" and data[begin : begin + 1] in (b"n", b"r", b"t"):
        begin += 1
    after = at + (3 if encoded else 1)
    stop = _DOMAIN.at(data, after, len(data))[1]
    if stop < 0 or begin >= at:
        return None
    domain = data[after:stop].rstrip(b".-").lower()
    stop = after + len(domain)
    local = data[begin:at].lower()
    return (
        None
        if _nobodys(data, local, domain, begin, stop)
        else (begin, stop, "email", "EMAIL", 0.97)
    )


def _nobodys(data: bytes, local: bytes, domain: bytes, begin: int, stop: int) -> bool:
    last = domain.rpartition(b".")[2]
    return (
        domain in _EXAMPLE_DOMAINS
        or domain.endswith(_EXAMPLE_ENDS)
        or any(domain.endswith(b"." + each) for each in _EXAMPLE_DOMAINS)
        or last in FILES
        or (len(last) > 2 and last.isascii() and last not in _DOMAINS_ENDS)
        or (local in _NOBODY and (local != b"git" or data[stop : stop + 1] in (b":", b"/")))
        # An account on another machine, not a mailbox: `deploy@host.name:/srv`.
        or (data[stop : stop + 1] == b":" and data[stop + 1 : stop + 2] in _PATH_STARTS)
        or data[begin - 3 : begin] == b"://"
        or data[begin - 1 : begin] == b"@"
        or _ON_MACHINES.search(data, data.rfind(b"\n", 0, begin) + 1, begin) != NOWHERE
    )


# Authors of commits

_WORD = r"[A-Z\xc3-\xc5][\w'.\x80-\xff-]*"
_CAPITALISED = rf"{_WORD}(?:[ \t](?:(?:van|de|der|von|la|di|da|bin|al) )*{_WORD}){{1,3}}"
_TRAILER = (
    r"author|commit(?:ter)?|tagger|(?:co-authored|signed-off|reviewed|acked|tested|reported|helped"
    r"|suggested)-by|from|to|cc|maintainer"
)
_SET = r"(?i:\b(?:author|committer)(?:[_ ]?name)?)\\{0,3}[\"']?[ \t]*[:=][ \t]*\\{0,3}[\"']?"
_AUTHOR_TRIGGER = (
    rf"(?i:\b(?:{_TRAILER}))[\"']?:?[ \t]+[\"']?[^\s<\"'][^<\n\"']*[ \t]<[^@\s>]+@"
    rf"|{_CAPITALISED}[ \t]<[^@\s>]+@"
    rf"|{_SET}{_CAPITALISED}"
    r"|\buser\.name[\"']?[ \t=]+[\"']?[A-Za-z\x80-\xff]|\bGIT_(?:AUTHOR"
    r"|COMMITTER)_NAME[\"']?[ \t]*[=:]"
    r"|[\"']name\\{0,3}[\"']\s*:\s*\\{0,3}[\"'][^\"'\\]+\\{0,3}[\"']\s*,\s*\\{0,3}[\"']email"
    r"|\[user\]\s+(?:email\s*=[^\n]*\n\s*)?name\s*=\s*\S"
    r"|\bname\s*=\s*[\"'][^\"'\n]+[\"']\s*,\s*email\s*="
    r"|(?m:^[ \t]*\^?[0-9a-f]{7,40} (?:[\w./-]+ +)?\([^()\d\n]+ [0-9]{4}-[0-9]{2}-[0-9]{2} )"
    rf"|(?m:^[ \t]+[0-9]+\t{_CAPITALISED}(?: <[^>]+>)?$)"
)
_AUTHORS = (
    Pattern(
        r"(?:user\.name[\"']?[ \t=]+|GIT_(?:AUTHOR|COMMITTER)_NAME[\"']?[ \t]*[=:][ \t]*)"
        r"(?:[\"']([^\"'\n]{2,60})[\"']|([A-Za-z\x80-\xff][\w.\x80-\xff-]{1,40}))"
    ),
    Pattern(rf"(?i:{_TRAILER})[\"']?:?[ \t]+[\"']?([^\s<\"'][^<\n\"']*?)[ \t]+<[^@\s>]+@"),
    Pattern(rf"({_CAPITALISED})[ \t]<[^@\s>]+@"),
    Pattern(rf"{_SET}({_CAPITALISED})"),
    Pattern(r"[\"']name\\{0,3}[\"']\s*:\s*\\{0,3}[\"']([^\"'\\]+)"),
    Pattern(r"\[user\]\s+(?:email\s*=[^\n]*\n\s*)?name\s*=\s*[\"']?([^\s\"'][^\"'\n]*)"),
    Pattern(r"name\s*=\s*[\"']([^\"'\n]+)[\"']"),
    Pattern(r"[ \t]*\^?[0-9a-f]{7,40} (?:[\w./-]+ +)?\(([^()\d\n]+?) +[0-9]{4}-"),
    Pattern(rf"[ \t]+[0-9]+\t({_CAPITALISED})"),
)
_BOTS = (
    b"[bot]", b"claude", b"github", b"gitlab", b"dependabot", b"renovate", b"copilot", b"codex",
    b"cursor", b"gemini", b"action", b"web-flow", b"your name", b"semantic-release",
    b"not committed", b"example", b"[redacted_", b"redacted", b"ci bot", b"jenkins", b"first last",
    b"john doe",
)  # fmt: skip


def author(data: bytes, start: int, __: int) -> Found | None:
    """The name beside an address, as git and mail write it."""
    for pattern in _AUTHORS:
        groups = pattern.groups(data, start, len(data))
        if groups is not None:
            begin, stop = next((each for each in groups[1:] if each != NOWHERE), NOWHERE)
            name = data[begin:stop].rstrip()
            lowered = name.lower()
            plain = name.startswith((b"<", b"$", b"{", b"%", b"[")) or lowered in (b"root", b"ci")
            if not name or plain or any(each in lowered for each in _BOTS):
                return None
            return begin, begin + len(name), "author-name", "NAME", 0.85
    return None


FAMILIES = ((_EMAIL_TRIGGER, email), (_AUTHOR_TRIGGER, author))

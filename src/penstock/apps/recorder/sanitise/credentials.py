"""Secrets that are known by where they stand: named values, headers, URLs, options, prose."""

from penstock.apps.recorder.sanitise.checks import DIGITS, WORD, back, made_up, placeholder
from penstock.apps.recorder.sanitise.names import (
    FIGURES,
    LENIENT,
    RANDOM,
    Kind,
    amount,
    is_secret,
    kind_of,
    speaks_for_itself,
)
from penstock.apps.recorder.sanitise.pattern import NOWHERE, Found, Pattern

LONGEST = 16_384
"""No value that has a name is longer; a text without blanks is read in such portions."""

_NAME = frozenset(WORD | set(b"_-.$"))


# Named values

_WORDS = (
    r"passw(?:or)?d|passwor[dt]|kennwort|passphrase|passcode|pwd|pass|secret|token|key|senha"
    r"|credentials?|creds|jwt|auth|salt|pepper|hmac|passkey|encryption|mnemonic|(?:seed"
    r"|recovery)[ _-]?phrase|pw|psk|pin|cvv|cvc|otp"
)
_SUFFIX = (
    r"(?:[_-]?(?:value|val|prod(?:uction)?|dev(?:elopment)?|staging|live|test|local|b64|base64"
    r"|plain(?:text)?|text|str|string|raw|env|new|old|default|header|base|[0-9]{1,3}|s)\b)?"
)
_TICKS = r"[\"'\x60]"
_CLOSE = rf"(?:\\{{0,3}}{_TICKS})?[\])]{{0,2}}"
_SIGNS = (
    r"[ \t]{0,4}:[ \t]{0,4}[A-Za-z&][\w.\[\]<>|? ]{0,40}[ \t]=[ \t]{1,4}"
    r"|[ \t]{0,4}:[ \t]{0,4}(?:str|string|String|bytes)[ \t]{0,4}=[ \t]{0,4}"
    r"|[ \t]{0,24}:[ \t]{0,4}[|>][+-]?[ \t]*\r?\n[ \t]+"
    r"|:[ \t]*\r?\n[ \t]*-[ \t]+"
    r"|[ \t]{0,24}(?:=>|:=|\|\|=|\?\?=|\?=|={1,3}|<-|:{1,2}=?)[ \t]{0,24}"
    r"|[ \t]*,\s*\\?[\"'](?:value|val)\\?[\"']\s*:\s*"
    r"|[ \t]{0,2},[ \t]{0,4}"
    r"|\r?\n[ \t+-]*value:[ \t]*"
    r"|[ \t]{1,4}(?:is|was)(?: (?:now|still|currently|set to))?:?[ \t]{1,4}"
    r"|[ \t]{1,8}(?:value|content)[ \t]{0,2}=[ \t]{0,2}"
    r"|[ \t]*\{[^}\"']*?default[ \t]*=[ \t]*"
    r"|[ \t]{1,4}"
    r"|\([ \t]{0,2}"
    r"|>"
)
_NAMED_TRIGGER = (
    rf"(?i)(?:{_WORDS}){_SUFFIX}{_CLOSE}(?:"
    r"[ \t]{0,24}(?:=|:|<-|\|\|=|\?)|[ \t]{0,2},\s{0,40}[\"'\x60\\]|[ \t]{1,4}(?:is|was)[ \t:]"
    r"|[ \t]{1,8}(?:value|content)[ \t]{0,2}=|[ \t]{1,4}[\"'\x60]|\([ \t]{0,2}[\"'\x60@]|>[^\s<]"
    r"|\r?\n[ \t+-]*value:"
    r"|[ \t]*\{[^}\"']*default[ \t]*=)"
)
_NAMED = Pattern(
    rf"(?i)((?:{_WORDS}){_SUFFIX})({_CLOSE})(=>"
    rf"|{_SIGNS})(?:[brfuBRFU@$]{{0,2}}(\\{{0,3}}{_TICKS}))?"
)
_BARE = Pattern(r"[^\s\"'\x60,;&<>()\[\]{}|\\]+")
_BARE_LINE = Pattern(r"[^\s\"'\x60\\]+")
_DEFAULT = Pattern(r"\$\{[\w.]{1,64}:[-=]([^}\s\"']{4,})\}")
_FALLBACK = Pattern(
    r"[^\n\"']*?(?:\|\||\?\?|\bor|\belse| :|,|\()[ \t]*[brfu@$]?[\"']([^\"'\n]{8,200})[\"']"
    r"|[\w.]+\([\"'][A-Z0-9_]+[\"'],[ \t]*[\"']([^\"'\n]{8,200})[\"']"
)


def named(data: bytes, start: int, __: int) -> Found | None:
    """The value behind a name that says that it is a secret."""
    limit = len(data)
    groups = _NAMED.groups(data, start, limit)
    if groups is None:
        return None
    _, (_, name_end), (close_start, close_end), (_, after), (tick_start, tick_end) = groups
    begin = back(data, start, _NAME, 64)
    kind = kind_of(data[begin:name_end].lstrip(b"-.$"))
    if kind is None:
        return None
    sign = data[close_end:after].strip()
    closed = close_end > close_start
    quoted = tick_start >= 0
    if sign == b"," and data[begin:name_end] == b"auth":
        return None  # the first of a pair of names, as in a list of migrations
    if not _joins(data, begin, sign, closed=closed, quoted=quoted):
        return None
    value_start = tick_end if quoted else after
    value_end = (
        _quoted_end(data, value_start, data[tick_start:tick_end])
        if quoted
        else _bare_end(data, begin, name_end, value_start)
    )
    prose = sign == b"" or sign.startswith((b"is", b"was"))
    return _judged(data, value_start, value_end, kind, sign, quoted=quoted, prose=prose)


def _joins(data: bytes, begin: int, sign: bytes, *, closed: bool, quoted: bool) -> bool:
    """Tell whether what stands between a name and a value makes it the value of the name."""
    if sign == b">":
        return data[begin - 1 : begin] in (b"<", b":")
    if sign == b",":
        return closed and quoted
    if sign == b"(":
        return quoted and not closed
    if sign == b"":
        return quoted and not closed
    return True


_JSON_END = Pattern(r"\"\s*[,:}\]]")


def _quoted_end(data: bytes, start: int, tick: bytes) -> int:
    """Where a quoted value ends: at its closing mark, or where a bare one would."""
    line_end = data.find(b"\n", start, start + LONGEST)
    line_end = min(len(data), start + LONGEST) if line_end < 0 else line_end
    at = start
    while (stop := data.find(tick[-1:], at, line_end)) >= 0:
        before = data[max(start, stop - 8) : stop]
        escapes = len(before) - len(before.rstrip(b"\\"))
        # With an escaped mark all marks are escaped; a plain one ends the text around it.
        if escapes < len(tick) if len(tick) > 1 else escapes % 2 == 0:
            if tick != b'"' and (inner := _JSON_END.search(data, start, stop)) != NOWHERE:
                return inner[0]
            return stop - (escapes if len(tick) > 1 else 0)
        at = stop + 1
    return _BARE.at(data, start, line_end)[1]


def _bare_end(data: bytes, begin: int, name_end: int, at: int) -> int:
    """Where a value without quotes ends; in a file of settings it is all up to a blank."""
    name = data[begin:name_end]
    alone = name.isupper() and data[begin - 1 : begin] in (b"", b"\n", b" ", b"+")
    return (_BARE_LINE if alone else _BARE).at(data, at, min(len(data), at + LONGEST))[1]


def _judged(
    data: bytes, start: int, end: int, kind: Kind, sign: bytes, *, quoted: bool, prose: bool
) -> Found | None:
    if end <= start:
        return None
    value = data[start:end]
    stripped = value if quoted else value.rstrip(b".,:;!?)}")
    end -= len(value) - len(stripped)
    type_, level = kind
    if value.startswith(b"${"):
        inner = _DEFAULT.groups(data, start, end)
        if inner and is_secret(RANDOM, data[slice(*inner[1])], quoted=True):
            return (*inner[1], "named-default", type_, 0.8)
        return None
    if sign == b"(" or (sign == b"," and not any(each in DIGITS for each in value)):
        level = RANDOM
    if not quoted and level == LENIENT and _followed_by_words(data, end, stripped):
        prose = True
    called = not quoted and data[end : end + 1] in (b"(", b"[")
    if not called and is_secret(level, stripped, quoted=quoted, prose=prose):
        return start, end, f"named-{type_.lower().replace('_', '-')}", type_, 0.85
    if not quoted:
        other = _FALLBACK.groups(data, start, len(data))
        for span in other[1:] if other else ():
            if span != NOWHERE and is_secret(RANDOM, data[slice(*span)], quoted=True):
                return (*span, "named-fallback", type_, 0.8)
    return None


def _followed_by_words(data: bytes, end: int, value: bytes) -> bool:
    """`Password: minimum of eight characters` is prose; a password alone on its line is none."""
    if any(each in DIGITS for each in value):
        return False
    rest = data[end : end + 40].split(b"\n", 1)[0].strip()
    return bool(rest) and not rest.startswith(
        (b"#", b"//", b";", b"&", b"|", b"}", b")", b"<", b"\\")
    )


# Headers

_HEADER_TRIGGER = (
    r"(?:^|[\s\"'])(?:-b|--cookie)[ =][\"']?[\w.%-]+="
    r"|\b(?:sessionid|csrftoken|PHPSESSID|JSESSIONID|ASP\.NET_SessionId|connect\.sid"
    r"|[a-z_]*_session"
    r"|remember_token|auth_token|sid|SID|HSID|SSID|li_at"
    r"|xs)\\{0,3}[\"']?[ ]?[=:,][ ]?\\{0,3}[\"']?[\w%.+/-]{16}"
    r"|\t(?:TRUE|FALSE)\t/[^\t\n]*\t(?:TRUE|FALSE)\t[0-9]+\t[^\t\n]+\t\S"
    r"|(?i)(?:authorization|set-cookie2?|cookie)\\{0,3}[\"'\x60]?\]?[ \t]{0,4}[:=,][ \t]{0,4}\S"
    r"|\b(?:bearer|basic|ssws)[ \t]{1,4}[A-Za-z0-9]"
)
_HEADER = Pattern(
    r"(?i)(authorization|set-cookie2?|cookie)\\{0,3}[\"'\x60]?\]?[ \t]{0,4}[:=,][ \t]{0,4}"
    r"(?:[bf]?(\\{0,3}[\"'\x60]))?((?:bearer|basic|token|apikey|api-key|key|digest|negotiate|ssws"
    r"|bot"
    r"|aws4-hmac-sha256|hmac|signature|genie[Kk]ey|splunk)[ \t:]{1,4})?"
)
_JAR = Pattern(r"\s?[\"']?(?:-b|--cookie)[ =]([\"']?)")
_MORSEL = Pattern(
    r"(?:sessionid|csrftoken|PHPSESSID|JSESSIONID|ASP\.NET_SessionId|connect\.sid|[a-z_]*_session"
    r"|remember_token|auth_token|sid|SID|HSID|SSID|li_at"
    r"|xs)\\{0,3}[\"']?[ ]?[=:,][ ]?\\{0,3}[\"']?([\w%.+/-]{16,})"
    r"|\t(?:TRUE|FALSE)\t/[^\t\n]*\t(?:TRUE|FALSE)\t[0-9]+\t[^\t\n]+\t(\S+)"
)
_SCHEME = Pattern(r"(?i)(bearer|basic|ssws)[ \t]{1,4}([A-Za-z0-9._~+/=-]{8,})")
_CREDENTIAL = Pattern(r"[^\s\"'\x60\\,;<>]+")
_TO_LINE_END = Pattern(r"[^\r\n\"'\x60\\]+")
_PAIR = Pattern(r"[\w.%$-]{1,128}=")
_SESSION = Pattern(r"(?i).*(?:sess|sid|auth|token|jwt|login|remember|csrf|xsrf|user|key)")


def header(data: bytes, start: int, __: int) -> Found | None:
    """The credentials in a header, or behind `Bearer` and `Basic` wherever they stand."""
    limit = len(data)
    groups = _HEADER.groups(data, start, limit)
    if groups is None:
        return _morsel(data, start) or _scheme(data, start)
    (_, after), name, _, scheme = groups
    if data[slice(*name)].lower().endswith((b"cookie", b"cookie2")):
        return _cookie(data, after)
    known = scheme != NOWHERE
    word = data[slice(*scheme)].strip(b" \t:").lower() if known else b""
    whole = word in (b"digest", b"aws4-hmac-sha256", b"hmac", b"signature")
    stop = (_TO_LINE_END if whole else _CREDENTIAL).at(data, after, min(limit, after + LONGEST))[1]
    value = data[after:stop]
    if stop < 0 or placeholder(value) or value[:1] in (b"$", b"{", b"[") or b"(" in value:
        return None
    if not (known and len(value) >= 6 and _unlike_code(value)) and not is_secret(
        RANDOM, value, quoted=True
    ):
        return None
    return after, stop, "authorization-header", "AUTHORIZATION", 0.96


def _morsel(data: bytes, start: int) -> Found | None:
    """A cookie outside of a header: of a command line, or by one of the names that servers use."""
    jar = _JAR.groups(data, start, len(data))
    if jar is not None:
        return _cookie(data, jar[0][1])
    groups = _MORSEL.groups(data, start, len(data))
    if groups is None:
        return None
    begin, stop = groups[1] if groups[1] != NOWHERE else groups[2]
    value = data[begin:stop]
    if placeholder(value) or not is_secret(RANDOM, value, quoted=True) or value.count(b"-") == 4:
        return None
    return begin, stop, "session-cookie", "COOKIE", 0.9


def _unlike_code(value: bytes) -> bool:
    return any(each in DIGITS for each in value) or (
        len(value) >= 16 and value.lower() != value and b"(" not in value and b"." not in value
    )


def _scheme(data: bytes, start: int) -> Found | None:
    groups = _SCHEME.groups(data, start, len(data))
    if groups is None or (start and data[start - 1] in WORD):
        return None
    _, word, (begin, stop) = groups
    value = data[begin:stop].rstrip(b".")
    stop = begin + len(value)
    if data[slice(*word)].lower() == b"basic":
        return (begin, stop, "basic-credentials", "AUTHORIZATION", 0.95) if pair64(value) else None
    if made_up(value) or placeholder(value) or len(value) < 12:
        return None
    if not is_secret(RANDOM, value, quoted=True):
        return None
    return begin, stop, "bearer-token", "TOKEN", 0.95


def pair64(value: bytes) -> bool:
    """Tell whether a value is `user:password` in base64."""
    from binascii import Error, a2b_base64

    try:
        pair = a2b_base64(value + b"=" * (-len(value) % 4))
    except (Error, ValueError):
        return False
    user, colon, password = pair.partition(b":")
    if not colon or not user or len(password) < 2:
        return False
    return all(32 <= each < 127 for each in pair)


def _cookie(data: bytes, at: int) -> Found | None:
    stop = _TO_LINE_END.at(data, at, min(len(data), at + LONGEST))[1]
    if stop < 0 or _PAIR.at(data, at, stop) == NOWHERE:
        return None
    for pair in data[at:stop].split(b";"):
        name, _, value = pair.strip().partition(b"=")
        telling = _SESSION.at(name, 0, len(name)) != NOWHERE
        if placeholder(value) or b"(" in value or len(value) < 6:
            continue
        if is_secret(RANDOM, value, quoted=True) or (telling and len(value) >= 8):
            return at, stop, "cookie-header", "COOKIE", 0.95
    return None


# URLs and options

_URL_TRIGGER = (
    r"://[^\s/@:\"'<>\x60\\]*:[^\s/\"'<>\x60\\]+@|://[\w-]{20}[\w-]*@"
    r"|(?:^|[\s\"'])-(?:u|-user)[ =]{0,2}[\"']?[\w.@+%-]+:[^\s:\"'/$]"
    r"|(?i:(?:^|\s)--?[\w-]*(?:password|passwd|passphrase|token|secret|key|pass|pwd))[ \t]+[^\s-]"
    r"|\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass|redis-cli|docker login|mongosh?) [^\n]"
    r"|\s-[pPwWkKa] ?[\"']?[^\s\"'-][^\s\"']{7}|--from-literal[= ][\"']?[\w.-]+=\S"
    r"|\b(?:ENV|ARG) [A-Z0-9_]*(?:PASSWORD|PASSWD|TOKEN|SECRET|KEY|PASS|PWD) [^\s=]"
    r"|\blogin \S+ password \S|(?i:identified by) [\"']"
    r"|[\w.*-]+:(?:5432|\*):[\w*.-]+:[\w*.-]+:[^\s:]"
)
_PAIRED = Pattern(r"-(?:u|-user)[ =]{0,2}([\"']?)[\w.@+%-]{1,64}:([^\s\"'\x60]+)")
_OPTION = Pattern(r"([\w-]+)[ \t]{1,4}([\"']?)")
_TOOL = Pattern(
    r"(?:mysql\w*|mariadb)\b[^\n|;&]*?\s-p[\"']?([^\s\"'-][^\s\"']+)"
    r"|sshpass\b[^\n|;&]*?\s-p\s{0,2}[\"']?([^\s\"']+)"
    r"|redis-cli\b[^\n|;&]*?\s(?:-a|--pass)\s+[\"']?([^\s\"']+)"
    r"|docker login\b[^\n|;&]*?\s-p\s+[\"']?([^\s\"']+)"
    r"|mongo(?:sh)?\b[^\n|;&]*?\s-p\s+[\"']?([^\s\"']+)"
)
_NETRC = Pattern(r"login \S{1,80} password (\S+)|(?i:identified by) [\"']([^\"'\n]+)")
_PGPASS = Pattern(r"[\w.*-]{1,64}:(?:5432|\*):[\w*.-]{1,64}:[\w*.-]{1,64}:([^\s:\"']+)")
_EXAMPLE_USERS = (b"user", b"username", b"usr", b"user1", b"u", b"me", b"login", b"name", b"foo")
_EXAMPLE_PASSWORDS = (b"pass", b"password", b"pwd", b"passwd", b"p", b"pw", b"secret", b"bar")


def url(data: bytes, start: int, end: int) -> Found | None:
    """The password of a URL, or of a command line."""
    if data.startswith(b"://", start):
        return _in_url(data, start, end)
    at = start
    while at < end and data[at] in b" \t\r\n\"'":
        at += 1
    if data[at : at + 1] == b"-":
        return _option(data, at) or _short_option(data, at)
    if data.startswith((b"ENV ", b"ARG "), at):
        return _option(data, at + 4)
    for pattern, rule in (
        (_TOOL, "tool-password"),
        (_NETRC, "login-password"),
        (_PGPASS, "pgpass"),
    ):
        groups = pattern.groups(data, at, len(data))
        span = next((each for each in groups[1:] if each != NOWHERE), None) if groups else None
        if span and is_secret(LENIENT, data[slice(*span)], quoted=True):
            return (*span, rule, "PASSWORD", 0.9)
    return None


def _in_url(data: bytes, start: int, end: int) -> Found | None:
    colon = data.find(b":", start + 3, end)
    if colon < 0:
        secret = data[start + 3 : end - 1]
        known = is_secret(RANDOM, secret, quoted=True) and not data.startswith(b"o", end)
        return (start + 3, end - 1, "url-token", "TOKEN", 0.9) if known else None
    user, password = data[start + 3 : colon].lower().lstrip(b"["), data[colon + 1 : end - 1]
    if placeholder(password) or not password or b"[REDACTED_" in password:
        return None
    if user in _EXAMPLE_USERS and password.lower() in _EXAMPLE_PASSWORDS:
        return None
    return colon + 1, end - 1, "url-password", "PASSWORD", 0.98


def _option(data: bytes, at: int) -> Found | None:
    limit = len(data)
    groups = _PAIRED.groups(data, at, limit)
    if groups is not None:
        span = groups[2]
        value = data[slice(*span)]
        plain = placeholder(value) or value.lower() in _EXAMPLE_PASSWORDS
        digits_only = value.isdigit() and len(value) < 6
        return None if plain or digits_only else (*span, "user-option", "PASSWORD", 0.95)
    groups = _OPTION.groups(data, at, limit)
    if groups is None:
        return None
    (_, begin), option, (tick_start, tick_end) = groups
    kind = kind_of(data[slice(*option)].lstrip(b"-"))
    if kind is None:
        return None
    quoted = tick_end > tick_start
    tick = data[tick_start:tick_end]
    stop = _quoted_end(data, begin, tick) if quoted else _BARE_LINE.at(data, begin, limit)[1]
    value = data[begin:stop]
    # Behind an option stands a value, not prose; but code may stand there, too.
    if not is_secret(kind[1], value, quoted=quoted, prose=value.isalpha()):
        return None
    return begin, stop, "secret-option", kind[0], 0.9


_SHORT = Pattern(
    r"-[pPwWkKa] ?[\"']?([^\s\"'-][^\s\"']{7,})|--from-literal[= ][\"']?[\w.-]+=([^\s\"']+)"
)


def _short_option(data: bytes, at: int) -> Found | None:
    """`-p` and its like say little, so what stands behind must speak for itself."""
    groups = _SHORT.groups(data, at, len(data))
    if groups is None:
        return None
    _, short, literal = groups
    if literal != NOWHERE:
        kept = placeholder(data[slice(*literal)])
        return None if kept else (*literal, "kubernetes-literal", "K8S_SECRET", 0.95)
    known = speaks_for_itself(data[slice(*short)])
    return (*short, "short-option", "PASSWORD", 0.8) if known else None


# Prose

_PROSE_TRIGGER = (
    r"(?i)\b(?:password|passwort|passphrase|passcode|pwd|secret|token|key|credential|cred|login"
    r"|pw|mdp|kennwort|wachtwoord|senha|clave|parola|wi-?fi|wlan|vpn|ssid|admin|root"
    r"|log(?:ged)? ?in"
    r"|sign(?:ed)? ?in|unlock|access code|mot de passe)s?\b(?:[^\w\n]|$)"
    r"|contrase\xc3\xb1a|has\xc5\x82o|\xd0\xbf\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb"
    r"|\xe5\xaf\x86\xe7\xa0\x81"
    r"|\xe3\x83\x91\xe3\x82\xb9\xe3\x83\xaf\xe3\x83\xbc\xe3\x83\x89"
    r"|(?i:\b\w*(?:jwt\.encode|jwt\.decode|hmac\w*|hmac\.new|fernet|aes\.new|SecretKeySpec|cipher\w*"
    r"|crypt|sign|verify|sign_?with|auth|login|authenticate|unlock|connect|set_?cookie|cookies?\.set"
    r"|\.cookie|credentials?|secret_?str|signing_?key|api_?key)[ =]{0,3}\()"
    r"|(?:^|[\s\"'-])(?-i:[A-Z][A-Z0-9_]{2,40}=[\"']?[A-Za-z0-9+/_=-]{24})"
)
_SETTING = Pattern(r"[\s\"'-]?([A-Z][A-Z0-9_]{2,40})=[\"']?([A-Za-z0-9+/_=.-]{24,})[\"']?")
_PUBLIC = Pattern(
    r".*(?:HASH|SHA[0-9]*|CHECKSUM|DIGEST|COMMIT|INTEGRITY|ID|PUBLIC|PUB|REV|FINGERPRINT|CURSOR"
    r"|ETAG|KEY_ID|SUM)"
)
_NEAR = 72
_BEFORE = 48


def said(data: bytes, start: int, end: int) -> Found | None:
    """A value that a sentence tells: near the word for it, and like no word of any language."""
    groups = None
    if data.find(b"=", start, end) >= 0:
        groups = _SETTING.groups(data, start, len(data))
    if groups is not None:
        name, value = data[slice(*groups[1])], data[slice(*groups[2])]
        if _PUBLIC.whole(name) or not speaks_for_itself(value):
            return None
        return (*groups[2], "random-setting", "SECRET", 0.75)
    if data[end - 1 : end] == b"(":
        return _argument(data, end)
    line_end = data.find(b"\n", end - 1, end + _NEAR)
    stop = min(len(data), end + _NEAR) if line_end < 0 else line_end
    return _telling(data, start, end - 1, stop) or _telling(
        data, start, max(start - _BEFORE, data.rfind(b"\n", 0, start) + 1), start
    )


def _telling(data: bytes, start: int, at: int, stop: int) -> Found | None:
    """The first word between two places that can only be a secret."""
    if not amount(data[at:stop], FIGURES):
        return None
    while (word := _BARE_WORD.search(data, at, stop)) != NOWHERE:
        begin, at = word
        if at == stop > start:
            at = _BARE_WORD.at(data, begin, min(len(data), begin + 200))[1]
        begin = at - len(data[begin:at].lstrip(b"([{<"))
        value = data[begin:at].rstrip(b".,:;?)]}>")
        if speaks_for_itself(value):
            if _PUBLISHED.search(data, max(0, start - 16), start) != NOWHERE:
                return None
            return begin, begin + len(value), "told-secret", "SECRET", 0.75
    return None


def _argument(data: bytes, at: int) -> Found | None:
    """A key or password among the arguments of a call that takes one."""
    stop = data.find(b"\n", at, at + 200)
    stop = min(len(data), at + 200) if stop < 0 else stop
    while (span := _ARGUMENT.search(data, at, stop)) != NOWHERE:
        begin, at = span[0] + 1, span[1] - 1
        if speaks_for_itself(data[begin:at]) or (
            at - begin >= 16 and is_secret(RANDOM, data[begin:at], quoted=True)
        ):
            return begin, at, "secret-argument", "SECRET", 0.75
        at += 1
    return None


_BARE_WORD = Pattern(r"[^\s\"'\x60\\]{8,}")
_ARGUMENT = Pattern(r"[\"']([^\"'\n]{8,200})[\"']")
_PUBLISHED = Pattern(r"(?i)public|fingerprint|checksum|digest|sha[0-9-]*")


FAMILIES = (
    (_NAMED_TRIGGER, named),
    (_HEADER_TRIGGER, header),
    (_URL_TRIGGER, url),
    (_PROSE_TRIGGER, said),
)

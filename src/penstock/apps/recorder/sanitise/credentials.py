"""Secrets that are known by where they stand: named values, and headers."""

from penstock.apps.recorder.sanitise.checks import DIGITS, WORD, back, made_up, placeholder
from penstock.apps.recorder.sanitise.names import (
    LENIENT,
    RANDOM,
    Kind,
    is_secret,
    kind_of,
)
from penstock.apps.recorder.sanitise.pattern import NOWHERE, Found, Pattern

LONGEST = 16_384
"""No value that has a name is longer; a text without blanks is read in such portions."""

_NAME = frozenset(WORD | set(b"_-.$"))


# Named values

_WORDS = (
    r"passw(?:or)?d|passwor[dt]|kennwort|passphrase|passcode|pwd|pass|secret|token|key|senha"
    r"|psw|pswd|puk|_pat|erlang[_-]cookie|secret[_-]?id|credentials?|creds|jwt|auth|salt|pepper"
    r"|hmac|macaroon|signing|passkey|encryption|mnemonic|(?:seed"
    r"|recovery)[ _-]?phrase|pw|psk|pin|cvv|cvc|otp|(?:mfa|2fa|totp|otp|authenticator)[ _-]?seed"
)
_SUFFIX = (
    r"(?:[_-]?(?:value|val|prod(?:uction)?|dev(?:elopment)?|staging|live|test|local|b64|base64"
    r"|plain(?:text)?|text|str|string|raw|env|new|old|default|header|base|content|[0-9]{1,3}|s)\b)?"
)
_TICKS = r"[\"'\x60]"
_CLOSE = rf"(?:\\{{0,3}}{_TICKS})?[\])]{{0,2}}"
_SIGNS = (
    r":\s*\{[^{}]*?\"value\"\s*:\s*"
    r"|:[ \t]*\r?\n(?:[ \t]+\w+:[^\n]*\n)+?[ \t]+[Dd]efault:[ \t]*"
    r"|</key>\s*<string>"
    r"|[ \t]+\w+=[\"'][^\"'\n]*[\"']>"
    r"|:[ \t]{1,4}!{1,2}\w+[ \t]{1,4}|"
    r"[ \t]{0,4}:[ \t]{0,4}[A-Za-z&][\w.\[\]<>|? ]{0,40}[ \t]=[ \t]{1,4}"
    r"|[ \t]{0,4}:[ \t]{0,4}(?:str|string|String|bytes)[ \t]{0,4}=[ \t]{0,4}"
    r"|[ \t]{0,24}:[ \t]{0,4}[|>][+-]?[ \t]*\r?\n[ \t]+"
    r"|:[ \t]*\r?\n[ \t]*-[ \t]+"
    r"|[ \t]{0,24}(?:=>|:=|\|\|=|\?\?=|\?=|={1,3}|<-|:{1,2}=?|%3[Dd])[ \t]{0,24}"
    r"|[ \t]{1,24}\|[ \t]{1,4}"
    r"|[ \t]*,\s*\\?[\"'](?:value|val)\\?[\"']\s*:\s*"
    r"|[ \t]{0,2},[ \t]{0,4}"
    r"|\r?\n[ \t+-]*value:[ \t]*"
    r"|[ \t]{1,4}(?:is|was)(?: (?:now|still|currently|set to))?:?[ \t]{1,4}"
    r"|[ \t]{1,8}(?:value|content)[ \t]{0,2}=[ \t]{0,2}"
    r"|[ \t]*\{[^}\"']*?default[ \t]*=[ \t]*"
    r"|[\])\"']{0,4}\.(?:type|fill|send_?[kK]eys|setValue|val)\("
    r"|>\s*<value>"
    r"|[ \t]{1,4}"
    r"|\([ \t]{0,2}"
    r"|>"
)
_NAMED_TRIGGER = (
    rf"(?i)(?:{_WORDS}){_SUFFIX}{_CLOSE}(?:"
    r"[ \t]{0,24}(?:=|:|<-|\|\|=|\?|%3d|\| [\x60\w])|[ \t]{0,2},\s{0,40}[\"'\x60\\]"
    r"|[ \t]{1,4}(?:is|was)[ \t:]"
    r"|[ \t]{1,8}(?:value|content)[ \t]{0,2}=|[ \t]{1,4}[\"'\x60]|\([ \t]{0,2}[\"'\x60@]|>[^\s<]"
    r"|[ \t]+\w+=[\"'][^\"'\n]*[\"']>[^\s<]"
    r"|\r?\n[ \t+-]*value:|</key>"
    r"|[ \t]*\{[^}\"']*default[ \t]*="
    r"|[\])\"']{0,4}\.(?:type|fill|send_?keys|setvalue|val)\([\"']|>\s*<value>)"
)
_NAMED = Pattern(
    rf"(?i)((?:{_WORDS}){_SUFFIX})({_CLOSE})(=>\s{{0,8}}string\([0-9]+\)[ \t]|=>"
    rf"|{_SIGNS})(?:[brfunBRFUN@$]{{0,2}}(\\{{0,3}}{_TICKS}))?"
)
_BARE = Pattern(r"[^\s\"'\x60,;&<>()\[\]{}|\\]+")
BARE_LINE = Pattern(r"[^\s\"'\x60\\]+")
_DEFAULT = Pattern(r"\$\{[\w.]{1,64}:[-=]([^}\s\"']{4,})\}")
_FALLBACK = Pattern(
    r"[\w.]+\([\"'][A-Z0-9_]+[\"']\)\s*(?:or|\|\||\?\?)\s*[\"']([^\"'\n]{8,200})[\"']"
    r"|[^\n\"']*?(?:\|\||\?\?|\bor|\belse| :|,|\()[ \t]*[brfu@$]?[\"']([^\"'\n]{8,200})[\"']"
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
    if _is_told_public(data, begin, data[begin:name_end]) or _is_no_name(
        data, begin, name_end, sign, after
    ):
        return None
    if not _joins(data, begin, sign, closed=closed, quoted=quoted):
        return None
    value_start = tick_end if quoted else after
    if not quoted and kind[1] == LENIENT:
        words = _words_end(data, value_start, sign)
        if words > 0:
            return value_start, words, "named-password", kind[0], 0.85
    value_end = (
        quoted_end(data, value_start, data[tick_start:tick_end])
        if quoted
        else _bare_end(data, begin, name_end, value_start)
    )
    prose = sign == b"" or sign.startswith((b"is", b"was"))
    return _judged(data, value_start, value_end, kind, sign, quoted=quoted, prose=prose)


def _is_no_name(data: bytes, begin: int, name_end: int, sign: bytes, after: int) -> bool:
    """Tell a name in another place: of a variable that must be set, of a user, of a migration."""
    name, before = data[begin:name_end], data[max(0, begin - 4) : begin]
    if before.endswith(b"${") and sign == b":" and data[after : after + 1] == b"?":
        return True  # what a shell says if the variable is not set
    if sign == b"(" and name.endswith((b"PSCredential", b"NetworkCredential")):
        return True  # the first of two is the user
    if sign == b"," and name == b"auth":
        return True  # the first of a pair of names, as in a list of migrations
    return before == b"--- "  # what Go says of a test that has passed


def _is_told_public(data: bytes, begin: int, name: bytes) -> bool:
    """`public key: …`, and the name of a secret in the words of a cloud: `arn:…:secret:name`."""
    before = data[max(0, begin - 120) : begin]
    return (before[-7:].lower() == b"public " and name.lower() == b"key") or (
        before[-1:] == b":" and b"arn:" in before[before.rfind(b" ") + 1 :]
    )


_PHRASE = Pattern(r"[a-z]{3,8}(?: [a-z]{3,8}){11,23}[ \t]*(?:[\n\"'\x60.,;)\x80-\xff-]|$)")
_APP_PASSWORD = Pattern(r"[a-z]{4}(?: [a-z]{4}){3}[ \t]*(?:[\n\"'\x60#]|$)")


def _words_end(data: bytes, start: int, sign: bytes) -> int:
    """Where a secret of several words ends: the phrase of a wallet, the password of an app."""
    limit = min(len(data), start + 240)
    stop = _PHRASE.at(data, start, limit)[1]
    if stop < 0 and sign == b"=":
        stop = _APP_PASSWORD.at(data, start, limit)[1]
    if stop < 0:
        return -1
    words = data[start:stop]
    return start + len(words.rstrip(b" \t\n\"'`#.,;)-" + bytes(range(128, 256))))


def _joins(data: bytes, begin: int, sign: bytes, *, closed: bool, quoted: bool) -> bool:
    """Tell whether what stands between a name and a value makes it the value of the name."""
    if sign == b">" or (sign.endswith(b">") and b"=" in sign and sign != b"=>"):
        return data[begin - 1 : begin] in (b"<", b":")
    if sign == b",":
        return closed and quoted
    if sign == b"(":
        return quoted and not closed
    if sign.endswith(b"("):
        return quoted
    if sign == b"":
        return quoted and not closed
    return True


_JSON_END = Pattern(r"\"\s*[,:}\]]")


def quoted_end(data: bytes, start: int, tick: bytes) -> int:
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
    return (BARE_LINE if alone else _BARE).at(data, at, min(len(data), at + LONGEST))[1]


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
    if not quoted and level == LENIENT and sign != b"=" and _followed_by_words(data, end, stripped):
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
    return bool(rest) and not (
        rest.startswith((b"#", b"//", b";", b"&", b"|", b"}", b")", b"<", b"\\", b'"', b"'"))
        or b"=" in rest.split()[0]
    )


# Headers

_HEADER_TRIGGER = (
    r"(?:^|[\s\"'])(?:-b|--cookie)[ =][\"']?[\w.%-]+="
    r"|\b(?:sessionid|csrftoken|PHPSESSID|JSESSIONID|ASP\.NET_SessionId|connect\.sid"
    r"|[a-z_]*_session"
    r"|remember_token|auth_token|sid|SID|HSID|SSID|li_at"
    r"|xs)\\{0,3}[\"']?[ ]?[=:,][ ]?\\{0,3}[\"']?[\w%.+/-]{16}"
    r"|\t(?:TRUE|FALSE)\t/[^\t\n]*\t(?:TRUE|FALSE)\t[0-9]+\t[^\t\n]+\t\S"
    r"|(?:sid|SID|[Ss]ess\w*|SESS\w*|auth|token)\\{0,3}\"[ ]?,[ ]?\\{0,3}\"value\\{0,3}\"[ ]?:"
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
    r"|\w+\\{0,3}\"[ ]?,[ ]?\\{0,3}\"value\\{0,3}\"[ ]?:[ ]?\\{0,3}\"([\w%.+/-]{16,})"
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
    if word in (b"digest", b"aws4-hmac-sha256", b"hmac", b"signature"):
        return _signature(data, after)
    stop = _CREDENTIAL.at(data, after, min(limit, after + LONGEST))[1]
    value = data[after:stop]
    if stop < 0 or placeholder(value) or value[:1] in (b"$", b"{", b"[") or b"(" in value:
        return None
    if not (known and len(value) >= 6 and _unlike_code(value)) and not is_secret(
        RANDOM, value, quoted=True
    ):
        return None
    return after, stop, "authorization-header", "AUTHORIZATION", 0.96


_SIGNATURE = Pattern(
    r"(?i)(?:signature|response|mac|hmac)\\?[\"']?[=:][ ]?\\?[\"']?([A-Za-z0-9+/=_-]{16,})"
)
_PAIRS_END = Pattern(r"[^\r\n]*")


def _signature(data: bytes, at: int) -> Found | None:
    """What proves a request among the parts of its header; else all up to the next quote."""
    end = _PAIRS_END.at(data, at, min(len(data), at + 2_048))[1]
    begin, stop = _SIGNATURE.search(data, at, end)
    if begin >= 0 and (groups := _SIGNATURE.groups(data, begin, stop)) is not None:
        return (*groups[1], "authorization-header", "AUTHORIZATION", 0.96)
    stop = _TO_LINE_END.at(data, at, min(len(data), at + LONGEST))[1]
    value = data[at:stop]
    if stop < 0 or placeholder(value) or value[:1] in (b"$", b"{", b"[") or not _unlike_code(value):
        return None
    return at, stop, "authorization-header", "AUTHORIZATION", 0.96


def _morsel(data: bytes, start: int) -> Found | None:
    """A cookie outside of a header: of a command line, or by one of the names that servers use."""
    jar = _JAR.groups(data, start, len(data))
    if jar is not None:
        return _cookie(data, jar[0][1])
    groups = _MORSEL.groups(data, start, len(data))
    if groups is None:
        return None
    begin, stop = next(each for each in groups[1:] if each != NOWHERE)
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


# What goes on

_GOES_ON_TRIGGER = (
    r"(?:\[REDACTED_[A-Z0-9_]+\]|<[A-Z_]+_[0-9a-f]{6}>)\\?[\"'][ \t]*(?:[+.&\\][ \t]*)?\r?\n"
    r"[ \t]*(?:[+.&][ \t]*)?[\"'][A-Za-z0-9+/=_-]{8}"
)


def goes_on(data: bytes, _: int, end: int) -> Found | None:
    """The second part of a secret that was written as several texts, once the first was taken."""
    begin = end - 8
    stop = quoted_end(data, begin, data[begin - 1 : begin])
    if not is_secret(RANDOM, data[begin:stop], quoted=True):
        return None
    return begin, stop, "rest-of-secret", "SECRET", 0.85


FAMILIES = (
    (_NAMED_TRIGGER, named),
    (_HEADER_TRIGGER, header),
    (_GOES_ON_TRIGGER, goes_on),
)

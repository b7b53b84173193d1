"""Secrets of URLs and of command lines: behind an option, or where a tool takes its password."""

from penstock.apps.recorder.sanitise.checks import WORD, back, placeholder
from penstock.apps.recorder.sanitise.credentials import BARE_LINE, LONGEST, quoted_end
from penstock.apps.recorder.sanitise.names import (
    LENIENT,
    RANDOM,
    is_secret,
    kind_of,
    speaks_for_itself,
)
from penstock.apps.recorder.sanitise.pattern import NOWHERE, Found, Pattern

# URLs and options

_URL_TRIGGER = (
    r"://[^\s/@:\"'<>\x60\\]*:[^\s/\"'<>\x60\\]+@|://[\w-]{20}[\w-]*@"
    r"|[\w.-]:[^\s@:/\"']+@(?:tcp|udp|unix)\("
    r"|[?&](?:appid|_?csrf\w*|xsrf\w*|authenticity_token|code|ticket|sid)=[\w%.~+/-]{16}"
    r"|\b(?:infura\.io/v3|alchemy(?:api)?\.(?:io|com)/v2|quiknode\.pro)/[\w-]{20}"
    r"|(?:^|[\s\"'])-(?:[A-Za-z]{0,4}u|-(?:proxy-)?user|-auth|-basic-auth|-cred(?:ential)?s)"
    r"[ =]{0,2}[\"']?[\w.@+%-]+:[\"']?[^\s:\"'/$]"
    r"|(?i:(?:^|\s)--?[\w-]*(?:password|passwd|passphrase|token|secret|key|pass|pwd))[ \t]+[^\s-]"
    r"|\s-[pPwWkKa] ?[\"']?[^\s\"'-][^\s\"']{7}|--from-literal[= ][\"']?[\w.-]+=(?:\S|\\\n)"
    r"|\b(?:ENV|ARG) [A-Z0-9_]*(?:PASSWORD|PASSWD|TOKEN|SECRET|KEY|PASS|PWD) [^\s=]"
    r"|_(?:(?i)key|token|secret)[ \t]+[A-Za-z0-9+/_-]{20}"
    r"|_(?i:pass|password|passwd|pwd)[ \t]{2,}[^\s=:]{6}"
    r"|\n(?:password|passwd|secret|api_key|token)[ \t]{2,}[^\s=:]{6}"
)
_PAIRED = Pattern(
    r"-(?:[A-Za-z]{0,4}u|-(?:proxy-)?user|-auth|-basic-auth|-cred(?:ential)?s)[ =]{0,2}([\"']?)"
    r"[\w.@+%-]{1,64}:[\"']?([^\s\"'\x60]+)"
)
_OPTION = Pattern(r"([\w-]+)[ \t]{1,24}([\"']?)")
_EXAMPLE_USERS = (b"user", b"username", b"usr", b"user1", b"u", b"me", b"login", b"name", b"foo")
_EXAMPLE_PASSWORDS = (b"pass", b"password", b"pwd", b"passwd", b"p", b"pw", b"secret", b"bar")
_NAME = frozenset(WORD | set(b"_"))


def url(data: bytes, start: int, end: int) -> Found | None:
    """The password of a URL, or what stands behind an option."""
    if data.startswith(b"://", start):
        return _in_url(data, start, end)
    if data[start] == _UNDERSCORE:
        return _option(data, back(data, start, _NAME, 64))
    told = _TOLD.groups(data, start, min(len(data), start + LONGEST))
    if told is not None:
        span = next(each for each in told[1:] if each != NOWHERE)
        level = LENIENT if span == told[1] else RANDOM
        known = is_secret(level, data[slice(*span)], quoted=True)
        return (*span, "told-in-address", "SECRET", 0.85) if known else None
    at = start
    while at < end and data[at] in b" \t\r\n\"'":
        at += 1
    if data[start] == _NEW_LINE and data.startswith(_COLUMNS, at):
        return _option(data, at)
    if data[at : at + 1] == b"-":
        return _option(data, at) or _short_option(data, at)
    return _option(data, at + 4)


_UNDERSCORE, _NEW_LINE = b"_\n"
_COLUMNS = (b"pass", b"secret", b"api_key", b"token")
_TOLD = Pattern(
    r"[\w.-]:([^\s@:/\"']{4,64})@(?:tcp|udp|unix)\("
    r"|[?&](?:\w+)=([\w%.~+/-]{16,})"
    r"|[a-z.]+/v?[0-9]?/?([\w-]{20,})"
)


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
    stop = quoted_end(data, begin, tick) if quoted else BARE_LINE.at(data, begin, limit)[1]
    value = data[begin:stop]
    if value.startswith((b"env:", b"file:", b"fd:")):
        return None  # where openssl finds it
    # Behind an option stands a value, not prose; but code may stand there, too.
    if not is_secret(kind[1], value, quoted=quoted, prose=value.isalpha()):
        return None
    return begin, stop, "secret-option", kind[0], 0.9


_SHORT = Pattern(
    r"-[pPwWkKa] ?[\"']?([^\s\"'-][^\s\"']{7,})"
    r"|--from-literal[= ][\"']?([\w.-]+)=(?:\\\r?\n[ \t]*)?[\"']?([^\s\"'\\]+)"
)
_WHO_OR_WHERE = Pattern(
    r"(?i)(?:\w*[_.-])?(?:user|username|user_?name|login|host|hostname|port|name|db|database|dbname"
    r"|email|region|endpoint|scheme|driver|schema)$"
)


def _short_option(data: bytes, at: int) -> Found | None:
    """`-p` and its like say little, so what stands behind must speak for itself."""
    groups = _SHORT.groups(data, at, len(data))
    if groups is None:
        return None
    _, short, name, literal = groups
    if literal != NOWHERE:
        kept = placeholder(data[slice(*literal)]) or _WHO_OR_WHERE.whole(data[slice(*name)])
        return None if kept else (*literal, "kubernetes-literal", "K8S_SECRET", 0.95)
    known = speaks_for_itself(data[slice(*short)])
    return (*short, "short-option", "PASSWORD", 0.8) if known else None


# Tools

_TOOL_TRIGGER = (
    r"\b(?:mysql(?:dump|admin)?|mariadb|sshpass|redis-cli|(?:docker|podman) login|mongosh?|openssl"
    r"|htpasswd|net (?:user?|rpc)|smbclient|ldap(?:search|modify|add|whoami|passwd)|zip|unzip"
    r"|7z[az]?|rar|unrar|mosquitto_\w+|ipmitool|sqlcmd|bcp|osql|rabbitmqctl|nmcli|ssh-keygen"
    r"|w?x?freerdp3?|plink|pscp|psftp|sqlplus|expdp|impdp|ConvertTo-SecureString|requirepass"
    r"|masterauth|lftp|snmp(?:walk|get|getnext|set|bulkwalk|bulkget|table|trap|-server)"
    r"|gpg2?|poetry config http-basic\S+|schtasks|aws ssm put-parameter) [^\n]"
    r"|\]:[0-9]{2,5}[ \t]+[\w.@-]+:\S"
    r"|assword:?[^\n]{0,8}[\n;]\s{0,8}send(?: --)? \""
    r"|\b(?:secret|password) [0-9] \S"
    r"|--\w*password[_-](?:command|cmd)[ =][\"']?(?:echo|printf) "
    r"|\b(?:echo|printf)[ \t]+(?:-\w+[ \t]+|[\"']?%s[\\\w]*[\"']?[ \t]+)?"
    r"(?:\"[^\"\n|]+\"|'[^'\n|]+'|[^\s\"'|]+)"
    r"[ \t]*\|[ \t]*(?:sudo|docker|podman|helm|su|passwd|chpasswd|gpg|kinit|cryptsetup|oras|crane"
    r"|gh|glab|vault)\b"
    r"|(?:-std?in|sudo -S)\b[^\n|<]*<<<"
    r"|jdbc:oracle:\w+:[\w.$]+/[^\s@/\"']+@"
    r"|\blogin \S+\s+password \S|(?i:identified by) [\"'\w]|(?m:^)PASS [^\s:]"
    r"|[\w.*-]+:(?:[0-9]{4,5}|\*):[\w*.-]+:[\w*.-]+:[^\s:]"
)
_UP_TO = r"\b[^\n|;&]*?\s"
_VALUE = r"\s{0,2}[\"']?([^\s\"'\[][^\s\"']*)"
_TOOLS = Pattern(
    r"(?:mysql\w*|mariadb)\b[^\n|;&]*?\s-p[\"']?([^\s\"'-][^\s\"']+)"
    rf"|(?:sshpass|(?:docker|podman) login|mongo(?:sh)?){_UP_TO}-p{_VALUE}"
    rf"|redis-cli{_UP_TO}(?:-a|--pass){_VALUE}"
    rf"|openssl{_UP_TO}-(?:k|K|pass|passin|passout)\s+[\"']?(?:pass:)?([^\s\"':]+)(?:[\s\"']|$)"
    rf"|htpasswd\s+-\w*n\w*\s+\S+{_VALUE}|htpasswd{_UP_TO}-\w*b\w*\s+(?:-\w+\s+)*\S+\s+\S+{_VALUE}"
    rf"|net use\s+\S+\s+\S+\s+([^\s/]+)\s+/(?i:user)|net use{_UP_TO}/(?i:user):\S+{_VALUE}"
    r"|net user\s+[^\s/]+\s+([^\s\"'/*]+)"
    rf"|(?:smbclient|net rpc){_UP_TO}-U\s*[\"']?[^\s%\"']+%([^\s\"']+)"
    rf"|ldap\w+{_UP_TO}-w{_VALUE}"
    rf"|(?:zip|unzip|mosquitto_\w+|ipmitool|sqlcmd|bcp|osql){_UP_TO}-P{_VALUE}"
    rf"|(?:7z[az]?|rar|unrar){_UP_TO}-p[\"']?([^\s\"'-][^\s\"']+)"
    rf"|rabbitmqctl{_UP_TO}(?:add_user|change_password)\s+\S+{_VALUE}"
    rf"|nmcli{_UP_TO}password{_VALUE}|ssh-keygen{_UP_TO}-[NP]\s+(?:\"([^\"\n]+)|'([^'\n]+)|(\S+))"
    rf"|lftp\b[^\n]*?\s-u\s*[\"']?[^\s,\"']+,([^\s\"']+)|snmp-server\s+community{_VALUE}"
    rf"|snmp[a-z]+{_UP_TO}-[cAX]{_VALUE}"
    r"|(?:secret|password)\s[0-9]\s(\S+)"
    rf"|--\w*password[_-](?:command|cmd)[ =][\"']?(?:echo|printf)(?: -n)?{_VALUE}"
    rf"|gpg2?{_UP_TO}--passphrase{_VALUE}"
    rf"|poetry config http-basic\S+\s+\S+{_VALUE}|schtasks{_UP_TO}/rp{_VALUE}"
    r"|aws ssm put-parameter[^\n]*?--value[ =](?:\"([^\"\n]+)|'([^'\n]+)|(\S+))"
    r"|\]:[0-9]{2,5}[ \t]+[\w.@-]+:(\S+)"
    r"|assword:?[^\n]{0,8}[\n;]\s*send(?: --)? \"([^\"\\\n]+)"
    rf"|w?x?freerdp3?{_UP_TO}/p:{_VALUE}|(?:plink|pscp|psftp){_UP_TO}-pw{_VALUE}"
    r"|(?:sqlplus|expdp|impdp)\s+(?:-\w+\s+)*[\"']?\w+/([^\s@\"']+)@"
    r"|jdbc:oracle:\w+:[\w.$]+/([^\s@/\"']+)@"
    r"|ConvertTo-SecureString\s+(?:-String\s+)?[\"']([^\"'\n]+)"
    rf"|(?:requirepass|masterauth){_VALUE}"
    r"|(?:echo|printf)(?:\s+-\w+|\s+[\"']?%s(?:\\n)?[\"']?)*\s+"
    r"(?:\"([^\"\n|]+)\"|'([^'\n|]+)'|([^\s\"'|]+))\s*\|"
    rf"|[^\n]{{0,100}}<<<{_VALUE}"
    r"|login\s\S{1,80}\s+password\s(\S+)"
    r"|(?i:identified by) (?:[\"']([^\"'\n]+)|([^\s;\"']*[0-9][^\s;\"']*))"
    r"|PASS\s([^\s\"']+)\r?(?:\n|$)"
    r"|[\w.*-]{1,64}:(?:[0-9]{4,5}|\*):[\w*.-]{1,64}:[\w*.-]{1,64}:([^\s:\"']+)(?:\s|$)"
)
_READS_A_PASSWORD = Pattern(
    r"[^\n]*?\|[ \t]*(?:sudo\b[^\n|]*\s-\w*S|(?:sudo )?(?:su|chpasswd|passwd|kinit"
    r"|cryptsetup)\b|[^\n|]*(?:-std?in\b|--passphrase-fd|--with-token))"
)
_LINE = 400


def tool(data: bytes, start: int, __: int) -> Found | None:
    """The password that a tool is given where it takes one, or that is written to it."""
    stop = min(len(data), start + _LINE)
    groups = _TOOLS.groups(data, start, stop)
    span = next((each for each in groups[1:] if each != NOWHERE), None) if groups else None
    if span is None or not is_secret(LENIENT, data[slice(*span)], quoted=True):
        return None
    if data.startswith((b"echo", b"printf"), start) and (
        _READS_A_PASSWORD.at(data, start, stop) == NOWHERE
    ):
        return None
    return (*span, "tool-password", "PASSWORD", 0.9)


FAMILIES = ((_URL_TRIGGER, url), (_TOOL_TRIGGER, tool))

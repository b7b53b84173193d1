"""Secrets that nothing around them tells of: long words that no person and no compiler writes."""

from penstock.apps.recorder.sanitise.checks import WORD, back, entropy, placeholder
from penstock.apps.recorder.sanitise.names import FIGURES, amount, kind_of, speaks_for_itself
from penstock.apps.recorder.sanitise.pattern import NOWHERE, Found, Pattern

# Twice a letter behind a digit, and a capital behind a small letter: a name has no such mixture.
_ANY = r"[A-Za-z0-9+/_-]*"
_UP, _MIX = "[a-z][A-Z]", "[0-9][A-Za-z]"
_LONE_TRIGGER = (
    rf"{_MIX}{_ANY}{_MIX}{_ANY}{_UP}{_ANY}"
    rf"|{_MIX}{_ANY}{_UP}{_ANY}{_MIX}{_ANY}"
    rf"|{_UP}{_ANY}{_MIX}{_ANY}{_MIX}{_ANY}"
)
_LETTERS = frozenset(WORD | set(b"+/_-"))
_AROUND = frozenset(b" \t\r\n\"'`=:,;|<>()[]{}")
_LEAST, _MOST = 20, 100
_AN_ID = Pattern(
    r"[a-z]{2,16}[_-][A-Za-z0-9_-]+|AAAA[BCE][2-3].*|MII[A-Za-z0-9].*|MFkw.*|eyJ.*|LS0tLS1CRUdJTi.*"
    r"|(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR|PHN2Zy|JVBERi0|UEsDB|H4sI|AAABAA|d09G).*"
)
"""What a service calls something, or what a file begins with that was written as base64."""
_PUBLISHED = Pattern(
    r"(?i)(?:.*(?:id|ids|id-[0-9]|md5|hash|sha[0-9]*|checksum|digest|commit|integrity|public"
    r"|pub|pubkey|revision"
    r"|fingerprint|cursor|etag|version|uuid|guid|nonce|slug|resolved|signature|thumbprint"
    r"|certificate|cert|accessor)|(?:.*[^a-z])?(?:rev|sum|ref|build|image|content|page|x|y|n|iv|tag"
    r"|kid))[ _-]?(?:key|token)?$"
)
_TOLD_PUBLIC = Pattern(
    r"(?i)public.?key[\"']?[ :=]{1,4}[\"']?$|ssh-[a-z0-9-]+ (?:[0-9]{3,4} )?$|peer: $"
)
_REACH = 48


def lone(data: bytes, start: int, end: int) -> Found | int | None:
    """A word that can only be a secret, wherever it stands; or up to where nothing is."""
    begin = back(data, start, _LETTERS, _MOST)
    stop = end
    while stop < len(data) and data[stop] == _EQUALS and stop < end + 2:
        stop += 1
    value = data[begin:stop]
    if not _LEAST <= len(value) <= _MOST or not _stands_alone(data, begin, stop):
        return end
    word = value.rstrip(b"=")
    if entropy(word) < 3.8 or not speaks_for_itself(word.translate(None, b"+")):
        return end
    if placeholder(value) or is_public(data, begin, stop):
        return end
    return begin, stop, "lone-secret", "SECRET", 0.6


def is_public(data: bytes, begin: int, stop: int) -> bool:
    """Tell whether a long random word is an id, a checksum, or a part of something public."""
    return (
        (_AN_ID.whole(data[begin:stop].rstrip(b"=")) and not _is_named_secret(data, begin))
        or _is_published(data, begin)
        or _is_wrapped(data, begin, stop)
    )


_EQUALS = ord("=")


def _is_named_secret(data: bytes, begin: int) -> bool:
    name = data[max(0, begin - _REACH) : begin].rsplit(b"\n", 1)[-1].rstrip(b" \t\"'`=:")
    return kind_of(name[max(name.rfind(each) for each in (b" ", b'"', b"'")) + 1 :]) is not None


def _stands_alone(data: bytes, begin: int, stop: int) -> bool:
    return (
        (begin == 0 or data[begin - 1] in _AROUND)
        and data[begin - 2 : begin] != b"=="
        and (
            stop == len(data)
            or data[stop] in _AROUND
            or data[stop : stop + 2] in (b". ", b".\n", b"\\n")
        )
    )


def _is_wrapped(data: bytes, begin: int, stop: int) -> bool:
    """Tell a line of something long, such as a certificate."""
    if stop - begin >= 60 and (
        _is_line(data, data.rfind(b"\n", 0, max(0, begin - 1)) + 1, begin - 1)
        or _is_line(data, stop + 1, data.find(b"\n", stop + 1))
    ):
        return True
    lowest = max(0, begin - 8_192)
    opened = data.rfind(b"-----BEGIN ", lowest, begin)
    return opened >= 0 and data.rfind(b"-----END ", lowest, begin) < opened


def _is_line(data: bytes, begin: int, stop: int) -> bool:
    """Tell whether what stands before or behind is another line of the same."""
    line = data[begin : stop if stop >= 0 else len(data)].strip()
    return len(line) >= 40 and _OF_BASE64.whole(line)


_OF_BASE64 = Pattern(r"[A-Za-z0-9+/_=-]+")


_NO_SECRETS = (b"://", b"?", b"base64,", b"|1|", b"ENC[", b"vault:")
"""What stands in a word before its last part: an address, a picture, what was encrypted."""


def _is_published(data: bytes, begin: int) -> bool:
    """Tell whether it is called something that everybody may see, or is a part of an address."""
    word = data[max(0, begin - 200) : begin]
    if word.endswith(b'W/"'):
        return True
    word = word[max(word.rfind(each) for each in (b" ", b"\n", b'"', b"'", b"\t")) + 1 :]
    if word.endswith(b"h1:") or any(each in word for each in _NO_SECRETS):
        return True
    before = data[max(0, begin - _REACH) : begin].rsplit(b"\n", 1)[-1]
    if _TOLD_PUBLIC.search(before, 0, len(before)) != NOWHERE:
        return True
    name = before.rstrip(b" \t\"'`=:([{>").rsplit(b",", 1)[-1].rsplit(b"{", 1)[-1]
    name = name[max(name.rfind(each) for each in (b"'", b'"', b"\t", b";", b"&", b" ")) + 1 :]
    return _PUBLISHED.whole(name)


# Shapes that nothing else has

_SHAPES = (
    (
        r"\$argon2(?:id|i|d)\$[^\s\"']{20,}|\$scrypt\$[^\s\"']{20,}|pbkdf2_sha(?:1|256"
        r"|512)\$[^\s\"']{20,}"
    ),
    r"\b[A-Z0-9]{5}(?:-[A-Z0-9]{5}){4}\b",
    r":[0-9]{1,6}:([0-9a-fA-F]{32}:[0-9a-fA-F]{32}):::",
    r"\*[0-9A-F]{40}\b",
    r"dockerconfigjson[\"']?[ \t]*[:=][ \t]*[\"']?([A-Za-z0-9+/]{20,}={0,2})",
    r"accounts[\"']?\s{0,4}[:=]\s{0,4}\[\s{0,8}[\"'](0x[0-9a-fA-F]{64})",
    r"[\"']([^\"'\s]{6,64})[\"']\.(?i:equals\w*)\([^\n]{0,60}(?i:passw|secret|token|pwd)",
    r"sonar\.login[ \t]*=[ \t]*([0-9a-f]{40})",
    r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{20,}={0,2}",
    r"\{S?SHA[0-9]*\}[A-Za-z0-9+/]{20,}={0,2}",
    r" (?:SHA|MD5|AES|DES)[-0-9]* \"([^\"\s]{8,64})\"",
    r"\bS[UAOCN][A-Z2-7]{56}\b",
    r"\bAAAA[\w-]{7}:APA91[\w-]{100,}",
    r"\b[0-9]/[0-9]{13,17}:[0-9a-f]{32}\b",
    r"\b00D[A-Za-z0-9]{12}![A-Za-z0-9._]{60,}",
    r"cloudflared [^\n]{0,60}(eyJ[A-Za-z0-9+/_-]{40,}={0,2})",
    r"\br[ow]community6? (\S{6,64})",
    r"stats auth [^\s:]{1,64}:(\S{6,128})",
    r"AUTH PLAIN ([A-Za-z0-9+/]{8,}={0,2})",
    r" : (?:PSK|EAP|XAUTH) \"([^\"\n]{6,128})\"",
    r"USERPWD, {0,4}\"[^\":\n]{1,64}:([^\"\n]{4,128})\"",
    r"define\([ ]?[\"'][A-Z_]{0,24}(?:KEY|SALT)[\"'],\s{0,12}'([^'\n]{32,100})'",
    r"\b(?:[0-9]{6}-){7}[0-9]{6}\b",
    r"\bc[ks]_[0-9a-f]{40}\b",
    r"_\|WARNING:-DO-NOT-SHARE-THIS[^\s\"']{20,}",
    r"pre-shared-key (?:(?:ascii-text|local|remote|hexadecimal|[0-9]) ){0,2}\"?([^\s\"]{6,128})",
    r"snmp(?:-server)? community \"?([^\s\"]{4,64})",
    r"\b(?:password|secret|key) [0579] ([^\s\"]{5,128})",
    r"oathtool [^\n]{0,60}?\b([A-Z2-7]{16,64})\b",
    (
        r"(?i:key|secret|psk)\w{0,8} ?(?:\[\w{0,12}\])? {0,2}= {0,2}(?:new byte\[\] ?)?"
        r"[\{\[(]\s{0,8}"
        r"((?:0x[0-9a-fA-F]{2} ?,\s{0,8}){7,63}0x[0-9a-fA-F]{2})"
    ),
)
"""Hashes of passwords, licences, dumps of accounts, and settings of single programs."""

_SHAPE = Pattern(
    "|".join(each if "(" in each.replace("(?", "") else f"({each})" for each in _SHAPES)
)


_ARMOUR = b"LS0tLS1CRUdJTi"


def _is_private(value: bytes) -> bool:
    """Tell whether what begins like a key or a certificate, in base64, is a private key."""
    from binascii import a2b_base64

    whole = value[:80].rstrip(b"=")
    return b"PRIVATE" in a2b_base64(whole[: len(whole) & ~3])


def shape(data: bytes, start: int, end: int) -> Found | None:
    """Something whose shape says all."""
    begin = max(0, start - _BACK.get(data[start : start + 1], 0))
    begin = _SHAPE.search(data, begin, min(len(data), end + 256))[0]
    groups = _SHAPE.groups(data, begin, min(len(data), begin + 4_096)) if begin >= 0 else None
    if groups is None or begin > end:
        return None
    span = next(each for each in groups[1:] if each != NOWHERE)
    value = data[slice(*span)]
    if placeholder(value) or not amount(value, FIGURES):
        return None
    if value.startswith(_ARMOUR) and not _is_private(value):
        return None
    return (*span, "secret-shape", "SECRET", 0.9)


# The search asks for just enough to be rare.
_SHAPE_TRIGGER = (
    r"\$argon2|\$scrypt\$|pbkdf2_sha|-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}\b|:[0-9a-fA-F]{32}:::"
    r"|\*[0-9A-F]{40}\b|dockerconfigjson|accounts[\"']?\s*[:=]\s*\[|[\"']\.(?i:equals)"
    r"|sonar\.login|LS0tLS1CRUdJTi|\{S?SHA| (?:SHA|MD5|AES|DES)[-0-9]* \"|\bS[UAOCN][A-Z2-7]{56}\b"
    r"|cloudflared |\br[ow]community6? |stats auth |AUTH PLAIN | : (?:PSK|EAP|XAUTH) \"|USERPWD,"
    r"|define\([ ]?[\"'][A-Z_]*(?:KEY|SALT)[\"'],|\b[0-9]{6}-[0-9]{6}-[0-9]{6}-"
    r"|\bc[ks]_[0-9a-f]{20}|:APA91[\w-]{20}|/[0-9]{13,17}:[0-9a-f]{32}\b|\b00D[A-Za-z0-9]{12}!"
    r"|_\|WARNING:-DO-NOT|pre-shared-key |snmp(?:-server)? community |\b(?:password|secret"
    r"|key) [0579] "
    r"|oathtool |(?i:key|secret|psk)\w* ?(?:\[\w*\])? *= *(?:new byte\[\] ?)?[\{\[(]\s*0x"
)
_BACK = {b"-": 12, b":": 42, b"/": 2, b'"': 66, b"'": 66}
"""How far before its sign a shape may begin."""

FAMILIES = ((_LONE_TRIGGER, lone), (_SHAPE_TRIGGER, shape))

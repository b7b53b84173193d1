"""Secrets that no rule knows: how likely a word is one, by its looks and by what is around it.

    log in to the router with admin and Tiger.dragon8

A word of letters and digits near a word that tells of secrets has traits: its shape, its name, the
words before it, how far the telling one is. Each has a weight, and their sum says how likely it
is. The weights were fitted to the labelled lines of the corpus: `python -m proof.likely`.
"""

from binascii import crc32

from penstock.apps.recorder.sanitise.checks import DIGITS, LETTERS, back, placeholder
from penstock.apps.recorder.sanitise.lone import is_public
from penstock.apps.recorder.sanitise.names import amount, speaks_for_itself
from penstock.apps.recorder.sanitise.pattern import NOWHERE, Found, Pattern

TYPE_CHECKING = False  # not from typing, which a hook need not load

if TYPE_CHECKING:
    from collections.abc import Iterator

RULE = "likely-secret"
SIZE = 16_384
"""So many weights there are; which is a trait's is told by its checksum."""
MIDDLE = 128
"""The byte of a weight of nothing."""
SHORTEST, LONGEST = 6, 128
LONG = 20
UUID_SIZE = 36
FAR, NEAR = 120, 60
"""How far before and behind a word one that tells of secrets may be."""
STEP = 32
FARTHEST_STEP = 512
"""So close behind one that tells, no other is looked for; in a long region the step grows."""

_SIGN = r"[!#$%&*+./0-9:?@A-Z^_a-z~-]"
_TRIGGER = (
    rf"[A-Za-z]{_SIGN}*[0-9]{_SIGN}*|[0-9]{_SIGN}*[A-Za-z]{_SIGN}*"
    r"|\b[A-Za-z][a-z][a-z]+-[A-Za-z][a-z][a-z]+(?:-[A-Za-z][a-z][a-z]+)+"
)
_IN_ODD = frozenset(range(33, 127)) - frozenset(b"\"'`\\")
"""What stands in a word that may hold any sign: a password manager uses them all."""
_IN_WORDS = frozenset(b"!#$%&*+./0123456789:?@^_~-") | LETTERS
_TELLS = Pattern(
    r"\[REDACTED_\w+\]|<[A-Z_]+_[0-9a-f]{6}>"
    r"|(?i)pas+w|passphrase|passcode|pass\b|passwd|pwd|\bpw\b|psk|secret|token|api.?key|keys?\b"
    r"|cred|log.?in\b|logon|logged in|sign.?in\b|auth|\badmin|\broot\b|\buser|account|\bacct"
    r"|\bpin\b|(?:recovery|backup|scratch|activation).codes?|seed|mnemonic|unlock|access"
    r"|connect|bearer|private|licen[cs]e|changed it|new one|old one|rotated"
    # tools and places
    r"|wi-?fi|wlan|ssid|sudo|vpn|s?ftp\b|ldap|smtp|mysql|psql|rdp\b|rcon|remote|anydesk|kdbx"
    r"|cookie|sessionid|webhook|lockbox"
    # in other languages
    r"|senha|clave|contrase|mdp\b|mot.de.passe|kennwort|wachtwoord|has\xc5\x82o|haslo|parola"
    r"|\xd0[\xbf\x9f]\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb|\xd0\xba\xd0\xbb\xd1\x8e\xd1\x87"
    r"|\xe5\xaf\x86\xe7\xa0\x81|\xe5\xaf\x86\xe7\xa2\xbc|\xe5\xaf\x86\xe9\x92\xa5"
    r"|\xe3\x83\x91\xe3\x82\xb9|\xe3\x82\xad\xe3\x83\xbc|\xeb\xb9\x84\xeb\xb0\x80"
    r"|\xd9\x83\xd9\x84\xd9\x85\xd8\xa9|\xc5\x9fifre|jelsz|l\xc3\xb6senord|adgangskode|salasana"
    r"|heslo|geheim|schl\xc3\xbcssel|zugang|zug\xc3\xa4nge|inlog|\bww\b|cl\xc3\xa9|\bclef|sleutel"
    r"|chave|palavra"
    r"|\xce\xba\xcf\x89\xce\xb4\xce\xb9\xce\xba|\xd7\xa1\xd7\x99\xd7\xa1\xd7\x9e"
    r"|\xd8\xb1\xd9\x85\xd8\xb2|\xe0\xb8\xa3\xe0\xb8\xab\xe0\xb8\xb1\xe0\xb8\xaa"
    r"|\xe0\xa4\xaa\xe0\xa4\xbe\xe0\xa4\xb8\xe0\xa4\xb5\xe0\xa4\xb0\xe0\xa5\x8d\xe0\xa4\xa1"
    r"|lozink|\xd0\xbb\xd0\xbe\xd0\xb7\xd0\xb8\xd0\xbd\xd0\xba|\xc5\xa1ifr"
    r"|\xd1\x88\xd0\xb8\xd1\x84\xd1\x80|geslo|parool|slapta|nenosiri|sandi\b|laluan"
    r"|m\xe1\xba\xadt kh\xe1\xba\xa9u|passord|kodeord|lykilor|wagwoord"
    r"|\xe1\x83\x9e\xe1\x83\x90\xe1\x83\xa0\xe1\x83\x9d\xe1\x83\x9a|\xec\x95\x94\xed\x98\xb8"
    r"|\xe5\x8f\xa3\xe4\xbb\xa4|\xe6\x9a\x97\xe8\xa8\xbc|chiave|\xd0\xb3\xd0\xb0\xd1\x81\xd0\xbb"
    r"|cyfrinair|\xf0\x9f\x94\x91|\xf0\x9f\x94\x90"
)
"""Words that tell of secrets; what stands for one that was taken out tells nothing."""


def regions(data: bytes) -> "Iterator[tuple[int, int]]":
    """Where something near tells of secrets; most texts have no such place."""
    size = len(data)
    begin = stop = at = 0
    while (span := _TELLS.search(data, at, size)) != NOWHERE:
        at = span[1]
        if data[span[0]] in b"[<":
            continue
        first = max(0, span[0] - NEAR - LONGEST // 2)
        if first > stop:
            if stop:
                yield begin, _after_word(data, stop)
            begin = first
        # Where much tells, it is not looked for at every step.
        step = max(STEP, min(FARTHEST_STEP, (at - begin) >> 2))
        stop = min(size, at + step + FAR)
        at += step
    if stop:
        yield begin, _after_word(data, stop)


def _after_word(data: bytes, at: int) -> int:
    last = min(len(data), at + LONGEST)
    while at < last and data[at] in _IN_ODD:
        at += 1
    return at


def words(data: bytes) -> "Iterator[tuple[int, int]]":
    """Where there are words that may be weighed."""
    for at, stop in regions(data):
        while (span := WORDS.search(data, at, stop)) != NOWHERE:
            begin, end = _bounds(data, *span)
            at = span[1]
            if begin < end:
                yield begin, end


WORDS = Pattern(_TRIGGER)
_NAMED = Pattern(r"[A-Za-z_]\w*=")
_UUID = Pattern(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _bounds(data: bytes, start: int, end: int) -> tuple[int, int]:
    """The word itself, or nothing if it is an address or too short: `user:` is none of it."""
    start, end = _stripped(data, back(data, start, _IN_WORDS, LONGEST), end)
    after = data[end : end + 1]
    if after in (b"(", b"[") or (after == b">" and data[start - 1 : start] == b"<"):
        return end, end  # a call, or what stands for a value
    if start and data[start - 1] == _ESCAPE:
        start += 5 if data[start] == _OF_CODE else 1
        whole = start, end
    else:
        whole = _whole(data, start, end)
    if whole != (start, end) and speaks_for_itself(data[slice(*whole)]):
        name = _NAMED.at(data, *whole)[1]
        if name < 0:
            return whole
        start = max(start, name)
    colon = data.rfind(b":", start, end) + 1
    if colon and data[colon : colon + 1] == b"/":
        return end, end
    start = max(start, colon)
    if not SHORTEST <= end - start <= LONGEST or data[start] in b"/.~@":
        return end, end
    value = data[start:end]
    if value.isdigit() or value.isalpha() or b"***" in value:
        return end, end
    return start, end


def _stripped(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Without what ends a sentence, or makes a word bold."""
    while end > start and data[end - 1] in b".,:;?*)":
        end -= 1
    while end > start and data[start] in b"*(":
        start += 1
    return start, end


def _whole(data: bytes, start: int, end: int) -> tuple[int, int]:
    """The word with whatever signs are around it."""
    if data[start - 1 : start] in _EDGES and data[end : end + 1] in _EDGES:
        return start, end
    stop = min(len(data), end + LONGEST)
    while end < stop and data[end] in _IN_ODD:
        end += 1
    return _stripped(data, back(data, start, _IN_ODD, LONGEST), end)


_EDGES = frozenset((b"", b" ", b"\n", b"\t", b"\r", b'"', b"'", b"`", b"\\"))
_ESCAPE, _OF_CODE = b"\\u"


def telling(data: bytes, begin: int, end: int) -> "list[tuple[int, int]]":
    """The words around one that tell of secrets."""
    found: list[tuple[int, int]] = []
    at, stop = max(0, begin - FAR), min(len(data), end + NEAR)
    while (span := _TELLS.search(data, at, stop)) != NOWHERE:
        at = span[1]
        if data[span[0]] not in b"[<":
            found.append(span)
    return found


def traits(data: bytes, begin: int, end: int, around: "list[tuple[int, int]]") -> list[bytes]:
    """What is to be said of a word and of what stands around it; each says so in its first sign."""
    value = data[begin:end]
    size = end - begin
    kinds = value.translate(_KINDS)
    shape = _collapsed(kinds)
    digits, capitals = kinds.count(b"9"), kinds.count(b"A")
    signs = size - digits - capitals - kinds.count(b"a")
    look = _look_of(value, shape)
    line = data.rfind(b"\n", max(0, begin - 64), begin) + 1 or max(0, begin - 64)
    stop = data.find(b"\n", end, end + 48)
    before, after = data[line:begin], data[end : end + 48 if stop < 0 else stop]
    said = [each for each in before.translate(_LOWER).split() if len(each) > 1]
    made = [
        b"",
        b"n%d" % min(size // 2, 20),
        b"d%d" % min(digits, 6),
        b"c%d" % min(capitals, 5),
        b"s%d" % min(signs, 4),
        b"h" + shape[:8],
        b"e" + shape[-3:],
        b"r%d" % (10 * len(shape) // size),
        b"l" + look,
        b"p" + before[-2:],
        b"q" + before[-1:],
        b"a" + after[:1],
    ]
    made += [b"w" + each for each in value.translate(_LOWER).split()[:4]]
    made += [b"x" + each for each in {*said[-8:]}]
    made += [b"b" + each for each in said[-1:]]
    made += [b"y" + each for each in after.translate(_LOWER).split()[:1]]
    made += _names(before, look)
    made += _told(data, begin, end, around, look + b"%d%d" % (min(signs, 2), min(digits, 4)))
    return made


def _names(before: bytes, look: bytes) -> list[bytes]:
    """What the word is called, if it stands behind a name and a sign."""
    bare = before.rstrip(b" \t\"'`=:(>|[{,")
    if not amount(before[len(bare) :], b"=:(>|"):
        return [b"m"]
    parts = bare[-40:].translate(_LOWER).split()[-2:]
    made = [b"m" + each for each in parts]
    if parts:
        last = parts[-1]
        made += (b"o" + last, b"k" + last[-4:], b"g" + last[-4:] + look)
    return made


def _told(
    data: bytes, begin: int, end: int, around: "list[tuple[int, int]]", look: bytes
) -> list[bytes]:
    """Which words around tell of it, and how far they are."""
    last = after = None
    for span in around:
        if span[0] < begin:
            last = span
        elif span[0] >= end and after is None:
            after = span
    made: list[bytes] = []
    if last is not None:
        word = data[slice(*last)].lower()
        far = max(0, begin - last[1])
        lines = data.count(b"\n", last[1], begin)
        sort = _SORTS.get(word[:3], b"u")
        near = b"n" if not lines and far < 40 else b"m" if lines <= 1 else b"f"
        made += (
            b"t" + word,
            b"f%d" % (far + 1).bit_length(),
            b"i" + sort + look,
            b"j" + sort + near + data[begin - 1 : begin] + data[end : end + 1],
        )
    if after is not None and b"\n" not in data[end : after[0]]:
        made += (b"u%d" % (after[0] - end + 1).bit_length(), b"v" + data[slice(*after)].lower())
    return made


def likely(data: bytes, start: int, end: int) -> Found | int:
    """A word that is likely to be a secret; or up to where there is none."""
    if end - start < SHORTEST - 1:
        return end
    begin, stop = _bounds(data, start, end)
    if begin >= stop or not (around := telling(data, begin, stop)):
        return end
    if weighed(data, begin, stop, around) <= 0 or placeholder(data[begin:stop]):
        return end
    if stop - begin >= LONG and is_public(data, begin, stop):
        return end
    return begin, stop, RULE, "SECRET", 0.5


def weighed(data: bytes, begin: int, end: int, around: "list[tuple[int, int]]") -> int:
    """How likely a word is a secret; above nothing it is."""
    from penstock.apps.recorder.sanitise.weights import BARS, WEIGHTS

    at = places(traits(data, begin, end, around))
    score = sum([WEIGHTS[each] for each in at]) - MIDDLE * len(at)
    return score - BARS[end - begin >= LONG]


def places(traits: list[bytes]) -> list[int]:
    """Where the weights of traits are."""
    return [crc32(each) % SIZE for each in traits]


# Looks

_KINDS = bytes(
    57 if each in DIGITS else 97 if 97 <= each <= 122 else 65 if 65 <= each <= 90 else each
    for each in range(256)
)
_PLAIN_KINDS = frozenset(b"9aA")
_LOWER = bytes(each | 32 if each in LETTERS or each >= 128 else 32 for each in range(256))
_SORTS = {
    each: sort
    for sort, all_ in (
        (
            b"p",
            (
                b"pas pwd pw psk sen cla con mdp mot ken wac has par \xd0\xbf\xd0 \xe5\xaf\x86"
                b" chi cyf ges kod loz lyk m\xe1\xba nen san sla wag \xc5\xa1i \xce\xba\xcf"
                b" \xd0\xb3\xd0 \xd0\xbb\xd0 \xd1\x88\xd0 \xd7\xa1\xd7 \xd8\xb1\xd9 \xe0\xa4\xaa"
                b" \xe0\xb8\xa3 \xe1\x83\x9e \xe5\x8f\xa3 \xe6\x9a\x97 \xec\x95\x94 \xf0\x9f\x94"
            ),
        ),
        (b"s", b"sec tok api key cre aut bea pri see mne lic"),
    )
    for each in all_.split()
}


def _collapsed(kinds: bytes) -> bytes:
    """`Aaaaa.aaaaa9` as `Aa.a9`."""
    made = bytearray()
    last = -1
    for each in kinds:
        if each != last or each not in _PLAIN_KINDS:
            made.append(each)
        last = each
    return bytes(made)


def _look_of(value: bytes, shape: bytes) -> bytes:
    size = len(value)
    if size == UUID_SIZE and _UUID.whole(value):
        return b"U"
    if not value.translate(None, b"0123456789abcdefABCDEF"):
        return b"h" if size < LONG else b"H%d" % min(size, 70)
    if size < 16:
        return b"o" if 2 * len(shape) > size else b"p"
    return b"R" if len(shape) * 3 > size else b"W"

"""What can only be told from more than a line: private keys, Kubernetes secrets, pairs of keys."""

from penstock.apps.recorder.sanitise.checks import REACH, after_repeats, placeholder
from penstock.apps.recorder.sanitise.names import LENIENT, Kind, is_secret, kind_of
from penstock.apps.recorder.sanitise.pattern import NOWHERE, Found, Pattern

_SIGN = Pattern(
    r"PRIVATE KEY|OpenVPN Static|PuTTY-User-Key-File|\bSecret\b|\.data\b|A[KS]IA[A-Z2-7]{4}"
    r"|(?i:insert\s+into)|chpasswd"
)
MANY = 64


def documents(data: bytes) -> list[Found]:
    """What can only be told from more than a line."""
    found = _tables(data)
    signs: set[bytes] = set()
    at = 0
    for _ in range(MANY):
        span = _SIGN.search(data, at, len(data))
        if span == NOWHERE:
            break
        signs.add(data[span[0] : span[0] + 4].upper())
        at = span[1]
    else:
        signs.update(_LOOKS)  # one of them comes again and again: any other may be there, too
    for look in {_LOOKS[sign] for sign in signs}:
        found += look(data)
    return found


_BEGIN = Pattern(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|-----BEGIN OpenVPN Static key V1-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY"
    r"|PuTTY-User-Key-File"
)
_END = Pattern(
    r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|-----END OpenVPN Static key V1-----"
    r"|---- END SSH2|Private-MAC: \w+"
)
_BODY = Pattern(r"(?:[A-Za-z0-9+/=\s]|\\[nr])*")
_FILLED = Pattern(r"[A-Za-z0-9+/=]{16}")


def _private_keys(data: bytes) -> list[Found]:
    found: list[Found] = []
    limit = len(data)
    at, last, last_end = 0, -REACH, (0, 0)
    while (span := _BEGIN.search(data, at, limit)) != NOWHERE:
        begin, after = span
        if last_end != NOWHERE and last_end[1] <= after:
            last_end = _END.search(data, after, limit)
        following = data.find(b"-----BEGIN", after)
        closed = last_end != NOWHERE and not 0 <= following < last_end[0]
        stop = last_end[1] if closed else _BODY.at(data, after, limit)[1]
        at = after
        if _FILLED.search(data, after, stop) != NOWHERE:
            found.append((begin, stop, "private-key", "PRIVATE_KEY", 1.0))
            at = stop
        else:
            at, last = max(at, after_repeats(data, last, begin)), begin
    return found


_SECRET_KIND = Pattern(
    r"(?m)^[ \t+-]*kind:[ \t]*[\"']?Secret\b|[\"']kind\\{0,3}[\"']\s*:\s*\\{0,3}[\"']Secret\b"
)
_DATA_LINE = Pattern(r"(?m)^([ \t+-]*)(?:data|stringData):[ \t]*\r?\n")
_ENTRY = Pattern(
    r"([ \t+-]+)[\w.\"'-]{1,128}:[ \t]*(\|[-+]?[ \t]*\r?\n)?[ \t]*[\"']?"
    r"([^\s\"'#{][^\r\n\"']*)?[\"']?[^\n]*\n?"
)
_DATA_JSON = Pattern(r"\\{0,3}\"(?:data|stringData)\\{0,3}\"\s*:\s*\{")
_JSON_ENTRY = Pattern(
    r"\s*\\{0,3}\"[^\"\\]{1,128}\\{0,3}\"\s*:\s*\\{0,3}\"([^\"\\]*)\\{0,3}\"\s*,?"
)


def _kubernetes(data: bytes) -> list[Found]:
    found: list[Found] = []
    limit = len(data)
    at = 0
    while (span := _SECRET_KIND.search(data, at, limit)) != NOWHERE:
        begin = max(0, data.rfind(b"\n---", 0, span[0]))
        stop = data.find(b"\n---", span[1])
        stop = limit if stop < 0 else stop
        found += _yaml_entries(data, max(begin, at), stop) + _json_entries(
            data, max(begin, at), stop
        )
        at = max(stop, span[1])
    return found


def _yaml_entries(data: bytes, at: int, stop: int) -> list[Found]:
    found: list[Found] = []
    while (span := _DATA_LINE.search(data, at, stop)) != NOWHERE:
        groups = _DATA_LINE.groups(data, span[0], stop)
        margin = groups[1][1] - groups[1][0] if groups else 0
        at = span[1]
        while (entry := _ENTRY.groups(data, at, stop)) is not None:
            (_, after), (left, right), _, value = entry
            if right - left <= margin or after == at:
                break
            at = after
            text = data[slice(*value)].strip() if value != NOWHERE else b""
            if len(text) > 1 and not placeholder(text):
                found.append(
                    (value[0], value[0] + len(text), "kubernetes-secret", "K8S_SECRET", 0.97)
                )
    return found


def _json_entries(data: bytes, at: int, stop: int) -> list[Found]:
    found: list[Found] = []
    while (span := _DATA_JSON.search(data, at, stop)) != NOWHERE:
        at = span[1]
        while (entry := _JSON_ENTRY.groups(data, at, stop)) is not None:
            (_, at), value = entry
            if value[1] - value[0] > 1 and not placeholder(data[slice(*value)]):
                found.append((*value, "kubernetes-secret", "K8S_SECRET", 0.97))
    return found


_ASKED = Pattern(r"\{\{? ?\.data[.\[ ][^\n]*\n[A-Za-z0-9+/]{8,}={0,2}")


def _answers(data: bytes) -> list[Found]:
    """What `kubectl … -o jsonpath='{.data.password}'` wrote, on the line behind it."""
    found: list[Found] = []
    at = 0
    while (span := _ASKED.search(data, at, len(data))) != NOWHERE:
        at = span[1]
        found.append((data.rfind(b"\n", 0, at) + 1, at, "kubernetes-secret", "K8S_SECRET", 0.9))
    return found


_HEAD = Pattern(
    r"(?i)[|,;\t][ \t\"]*(?:\w*[_ -])?(?:password|passwd|passwort|kennwort|pwd|pass|secret|token"
    r"|api[_ -]?key|pin)[ \t\"]*(?:[|,;\t\r\n]|$)"
)
_RULE = frozenset(b"|-:+= \t\r")
LONGEST_ROW = 2_000


def _tables(data: bytes) -> list[Found]:
    """The columns whose heads say that they hold secrets: in Markdown, CSV and others."""
    found: list[Found] = []
    at = 0
    while (span := _HEAD.search(data, at, len(data))) != NOWHERE:
        at = max(span[1], _table(data, *span, found))
    return found


def _table(data: bytes, begin: int, end: int, found: list[Found]) -> int:
    """Look at the rows below a head; where the table ends."""
    at = data.rfind(b"\n", max(0, begin - LONGEST_ROW), begin) + 1
    stop = _line_end(data, end - 1)
    between = data[begin : begin + 1]
    heads = data[max(at, begin - LONGEST_ROW) : stop].split(between)
    named = (kind_of(cell.strip(b' \t"\r').replace(b" ", b"_")) for cell in heads)
    kinds = {place: kind for place, kind in enumerate(named) if kind}
    while stop < len(data):
        at, stop = stop + 1, _line_end(data, stop + 1)
        row = data[at:stop]
        if _RULE.issuperset(row) and row.strip():
            continue
        if row.count(between) != len(heads) - 1:
            return at
        found += _cells(row, at, between, kinds)
    return stop


def _line_end(data: bytes, at: int) -> int:
    stop = data.find(b"\n", at, at + LONGEST_ROW)
    return min(len(data), at + LONGEST_ROW) if stop < 0 else stop


def _cells(row: bytes, at: int, between: bytes, kinds: "dict[int, Kind]") -> list[Found]:
    found: list[Found] = []
    cells = row.split(between)
    for place, kind in kinds.items():
        value = cells[place].strip(b" \t\"'`\r")
        if is_secret(kind[1], value, quoted=True):
            before = sum(len(cell) + 1 for cell in cells[:place])
            begin = at + before + cells[place].index(value)
            found.append((begin, begin + len(value), "table-secret", kind[0], 0.85))
    return found


_INSERT = Pattern(r"(?i)insert\s+into\s+[^\n(;]+\(([^();]+)\)\s*values\s*")
_TUPLE = Pattern(r"\s*\(((?:[^()'\"]|'[^'\n]*'|\"[^\"\n]*\")*)\)\s*,?")
_CELL = Pattern(r"\s*(?:N?'([^'\n]*)'|\"([^\"\n]*)\"|[^,'\"]*)\s*(?:,|$)")


def _inserts(data: bytes) -> list[Found]:
    """The values of columns that a statement names as secrets."""
    found: list[Found] = []
    at, last = 0, -REACH
    limit = len(data)
    while (groups := _INSERT.find(data, at, limit)) is not None:
        (begin, at), names = groups[0], data[slice(*groups[1])].split(b",")
        kinds = [kind_of(name.strip(b" \t\r\n\"'`[]")) for name in names]
        before = len(found)
        while (row := _TUPLE.groups(data, at, limit)) is not None:
            at = row[0][1]
            found += _values(data, *row[1], kinds)
        if len(found) == before:
            at, last = max(at, after_repeats(data, last, begin)), begin
    return found


def _values(data: bytes, begin: int, end: int, kinds: "list[Kind | None]") -> list[Found]:
    found: list[Found] = []
    row, at = data[begin:end], 0
    for kind in kinds:
        cell = _CELL.groups(row, at, len(row))
        if cell is None or cell[0][1] == at:
            break
        at = cell[0][1]
        start, stop = cell[1] if cell[1] != NOWHERE else cell[2]
        if kind and start >= 0 and is_secret(kind[1], row[start:stop], quoted=True):
            found.append((begin + start, begin + stop, "inserted-secret", kind[0], 0.85))
    return found


_USERS = Pattern(r"(?m)^[ \t+-]*[\w.-]{1,32}:([^\s:]{6,128})\r?$")


def _lists(data: bytes) -> list[Found]:
    """Users and their passwords, as `chpasswd` reads them."""
    found: list[Found] = []
    at = data.find(b"chpasswd")
    while (span := _USERS.search(data, at, len(data))) != NOWHERE:
        groups = _USERS.groups(data, span[0], len(data))
        at = span[1]
        if groups is not None and is_secret(LENIENT, data[slice(*groups[1])], quoted=True):
            found.append((*groups[1], "user-list", "PASSWORD", 0.85))
    return found


_AWS_PAIR = Pattern(
    r"\bA(?:KI|SI)A[A-Z2-7]{16}\b[\"']?[ \t]*[,:;|\t ][ \t]*[\"']?[A-Za-z0-9+/]{40}\b"
)


def _aws_pairs(data: bytes) -> list[Found]:
    """The secret beside its id, as the console's CSV has them."""
    found: list[Found] = []
    at = 0
    while (span := _AWS_PAIR.search(data, at, len(data))) != NOWHERE:
        at = span[1]
        found.append((at - 40, at, "aws-secret-key", "AWS_SECRET_KEY", 0.95))
    return found


_LOOKS = {
    b"PRIV": _private_keys,
    b"PUTT": _private_keys,
    b"OPEN": _private_keys,
    b"SECR": _kubernetes,
    b".DAT": _answers,
    b"INSE": _inserts,
    b"CHPA": _lists,
    b"AKIA": _aws_pairs,
    b"ASIA": _aws_pairs,
}
"""By how the sign of it begins."""

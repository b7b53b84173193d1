"""Whose home a path is in, and what machines are called."""

from penstock.apps.recorder.sanitise.checks import DIGITS, FILES, WORD
from penstock.apps.recorder.sanitise.pattern import NOWHERE, Found, Pattern

_PLACE_TRIGGER = (
    r"(?:/home/|/Users/|/usr/home/|/export/home/|\\{1,4}(?:Users|home)\\{1,4}|[/\\\"' =:]-(?:Users"
    r"|home)-"
    r"|%2[Ff](?:Users|home)%2[Ff]|\\/(?:Users|home)\\/)[A-Za-z0-9_.\x80-\xff-]"
    r"|\.(?:local|lan|internal|corp|intranet|intra|localdomain|home\.arpa)\b"
    r"|\b(?:DESKTOP|LAPTOP|WIN)-[A-Z0-9]{6}[A-Z0-9]*\b"
    r"|-(?:MacBook|iMac|Mac-mini|Mac-Studio|MacBookPro|MacBookAir|MBP|iPhone|iPad|ThinkPad|XPS)\b"
    r"|[\w.-]@[\w.-]+(?::[~/][\w./~-]*[$#]| [~/][\w./~-]* [%$#]| [\w./~-]+\][$#])(?: |$)"
    r"|\b(?i:host|server|node|machine"
    r"|instance)[\"']?[ \t]?[:=][ \t]?[\"']?[a-z][a-z0-9]*-[a-z0-9-]*[0-9]"
    r"|(?i:\b(?:host_?name|computer_?name|machine_?name|node_?name|nodename)[\"']?\]?[ \t]{0,4}[:=]"
    r"[ \t]{0,4}[\"']?[A-Za-z])"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov"
    r"|Dec) [ 0-9][0-9] [0-9:]{8} [\w.-]+ [\w./-]+(?:\[[0-9]+\])?:"
    r"|\b(?:ssh|mosh|ping) (?:-\S+ )*(?:[\w.-]+@)?[a-z][a-z0-9]*-[a-z0-9-]*[0-9]\b"
    r"|\bLinux [\w.-]+ [0-9]+\.[0-9]+\.[0-9]|\bec2-[0-9]{1,3}(?:-[0-9]{1,3}){3}\b"
)
_HOME = Pattern(
    r"(?:/home/|/Users/|/usr/home/|/export/home/|\\{1,4}(?:Users|home)\\{1,4}|[/\\\"' =:]-(?:Users"
    r"|home)-"
    r"|%2[Ff](?:Users|home)%2[Ff]|\\/(?:Users|home)\\/)([A-Za-z0-9_.\x80-\xff-]+)"
)
_DASHED = Pattern(r"[A-Za-z0-9_.]+")
_NOBODYS_HOME = frozenset(
    b"""shared public default user users username runner root ubuntu node vscode app appuser
    circleci travis ec2-user me you name jovyan gitpod codespace vagrant runneradmin
    containeradministrator
    all linuxbrew git deploy admin guest www-data jenkins airflow builder build ci docker coder
    developer dev worker webapp www nobody postgres pi oracle centos debian fedora alpine azureuser
    opc hadoop spark nonroot container sandbox workspace project projects yourname your-username
    youruser myuser someuser your-name local lib bin application service svc rstudio steam home
    x xxx administrator foo test testuser user1 example agent claude penstock conda mambauser
    homeassistant homebrew""".split()
)
_NOT_MACHINES = (
    b"cluster.local", b"docker.internal", b"localhost.localdomain", b"google.internal",
    b"svc.local", b"containers.internal", b"lima.internal", b"orb.local",
)  # fmt: skip
_MACHINE = frozenset(WORD | set(b"-."))
_TOLD = Pattern(
    r"(?i)(?:host_?name|computer_?name|machine_?name|node_?name|nodename)[\"']?\]?[ \t]{0,4}[:=]"
    r"[ \t]{0,4}[\"']?([A-Za-z0-9][\w.-]{2,62})(.)?"
)
_SYSLOG = Pattern(r"[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} ([\w.-]{2,63}) |Linux ([\w.-]{2,63}) ")
_PROMPT = Pattern(r"[\w.-]@([\w.-]{2,63})(?::| )")
_SERVER = Pattern(
    r"(?i:host|server|node|machine"
    r"|instance)[\"']?[ \t]?[:=][ \t]?[\"']?([a-z][a-z0-9]*-[a-z0-9-]*[a-z0-9])"
)


_REACHED = Pattern(
    r"(?:ssh|mosh|ping) (?:-\S+ )*(?:[\w.-]+@)?([a-z][a-z0-9]*-[a-z0-9-]*[0-9])(?:[\s\"';|]|$)"
)
_TELLING = (
    (_PROMPT, "shell-prompt"),
    (_SYSLOG, "syslog-machine"),
    (_TOLD, "named-machine"),
    (_SERVER, "named-machine"),
    (_REACHED, "reached-machine"),
)


def place(data: bytes, start: int, end: int) -> Found | None:
    """The name in a path to somebody's home, or of a machine."""
    limit = len(data)
    first = data[start : start + 1]
    groups = _HOME.groups(data, start, limit)
    if groups is not None:
        return _home(data, start, groups[1])
    if first == b".":
        return _machine(data, start, end)
    if first == b"-":
        begin = _run_back(data, start)
        stop = end
        while stop < limit and data[stop] in _MACHINE:
            stop += 1
        stop = begin + len(data[begin:stop].rstrip(b".-"))
        return (begin, stop, "device-name", "HOSTNAME", 0.85) if begin < start else None
    if data[start : start + 8].startswith((b"DESKTOP-", b"LAPTOP-", b"WIN-")):
        return start, end, "windows-machine", "HOSTNAME", 0.9
    if first == b"e" and data.startswith(b"ec2-", start):
        return start, end, "ec2-machine", "HOSTNAME", 0.9
    for pattern, rule in _TELLING:
        told = pattern.groups(data, start, limit)
        if told is not None:
            span = told[1] if told[1] != NOWHERE or len(told) < 3 else told[2]
            plain = rule == "named-machine" and data[span[0] - 1 : span[0]] not in (b'"', b"'")
            telling = any(each in DIGITS or each == 45 for each in data[slice(*span)])
            if (plain and not telling) or not _is_machine(data, *span):
                return None
            return (*span, rule, "HOSTNAME", 0.85)
    return None


_PATH_BEFORE = frozenset(WORD | set(b"/\\.:-_+$@%~"))
_PAGE = Pattern(
    r"(?i)https?:/|[\w-]+(?:\.[\w-]+)*(?::[0-9]+)?(?:/|$)|/(?:api|v[0-9]+|app|pages?|routes?|docs)(?:/|$)"
)


def _home(data: bytes, start: int, span: tuple[int, int]) -> Found | None:
    begin, stop = span
    dashed = b"-" in data[start:begin]
    # Below another folder it is an address of a page, `/shop/home/basket`.
    if not dashed and data[start : start + 1] == b"/" and start and data[start - 1] in _INSIDE:
        before = data[_run(data, start, _PATH_BEFORE) : start]
        option = before.startswith(b"-")  # `-L/Users/ann/lib`
        if not option and _PAGE.at(before, 0, len(before)) != NOWHERE and before[1:2] != b":":
            return None
    if dashed:
        stop = _DASHED.at(data, begin, stop)[1]
    name = data[begin:stop].rstrip(b".")
    if name.lower() in _NOBODYS_HOME or not name or name.startswith(b".") or name.isdigit():
        return None
    after = data[begin + len(name) : begin + len(name) + 1]
    if b"." in name and after not in (b"/", b"\\") and name.rpartition(b".")[2].lower() in FILES:
        return None
    return begin, begin + len(name), "home-path", "USER", 0.9


_INSIDE = frozenset(WORD | set(b".-_)}]%*"))


def _run_back(data: bytes, at: int) -> int:
    return _run(data, at, _MACHINE)


def _run(data: bytes, at: int, letters: "frozenset[int]") -> int:
    lowest = max(0, at - 100)
    while at > lowest and data[at - 1] in letters:
        at -= 1
    return at


def _machine(data: bytes, start: int, end: int) -> Found | None:
    begin = _run_back(data, start)
    begin += len(data[begin:start]) - len(data[begin:start].lstrip(b".-"))
    name = data[begin:end].lower()
    after = data[end : end + 2]
    goes_on = after[:1] in (b".", b"_", b"-") and after[1:2].isalnum()
    if begin >= start or name.endswith(_NOT_MACHINES) or goes_on or after[:1] == b"(":
        return None
    label = data[begin:start]
    in_url = data[begin - 3 : begin] == b"://" or data[begin - 1 : begin] == b"@"
    port = after[:1] == b":" and after[1:2].isdigit()
    telling = any(each in DIGITS for each in label) or b"-" in label
    if data[begin - 1 : begin] in (b"/", b"\\", b"_", b"$", b"*") and not in_url:
        return None
    if not (telling or in_url or port):
        return None
    return begin, end, "internal-machine", "HOSTNAME", 0.85


_NO_NAMES = frozenset(
    b"""localhost null none true false undefined string str host hostname self this config kernel
    window location""".split()
)
_INSIDE_ENDS = (b".local", b".lan", b".internal", b".corp", b".home")


def _is_machine(data: bytes, begin: int, stop: int) -> bool:
    name = data[begin:stop].rstrip(b".").lower()
    return not (
        name in _NO_NAMES
        or (b"." in name and not name.endswith(_INSIDE_ENDS))
        or data[stop : stop + 1] == b"("
        or b"example" in name or b"your" in name
        or name.isdigit()
    )  # fmt: skip


FAMILIES = ((_PLACE_TRIGGER, place),)

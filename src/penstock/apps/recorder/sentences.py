"""Sentences of a conversation, and what tells those that say something from those that do not.

Plans, guesses, questions, reports and what is taken back are put much like what was learned.
"""

import re
from functools import cache, lru_cache

NOT = re.compile(
    r"""(?ix)
    ^\W*(?:
        (?:ok(?:ay)?|sure|great|right|well|hmm+|good|thanks?|alright|now|next|so)[,.!:]?\s+
    )*
    (?:
        (?:let\ me|i(?:'ll|\ will|'m\ going\ to|\ am\ going\ to|'d\ like|\ can|\ could|'m\ now
            |\ want\ to|\ need\ to|\ should|\ am\ now)|we(?:'ll|\ will|\ could|\ might|\ can)|i'd
            |(?:the\ )?(?:plan|to-?do|next\ steps?|remaining|summary|status)\s*:
            |shall\ (?:i|we)|should\ (?:i|we)|do\ you|can\ you|could\ you|would\ you
            |please\ (?:fix|add|make|look|write|check|run|change|update|remove|rename|create
                |implement|help|show)
            |(?:running|checking|looking|reading|searching|trying|starting)
                (?=\W*$|\ (?:it|the|at|now|for|how|what|where|whether|through|into|this|that|them
                    |again)\b)
            |done|added|updated|created
            |implemented|renamed|removed|following|hello|hi\b|hey|you're\ welcome|glad|happy\ to)
    )
    """
)
"""Beginnings of what is a plan, a wish, a question or small talk."""

GUESS = re.compile(
    r"(?i)\b(?:maybe|perhaps|probably|possibly|might|could be|i (?:think|guess|suspect(?:ed)?"
    r"|assume[d]?|believe|wonder|bet)|i'm not sure|not sure|my (?:guess|hunch|theory"
    r"|hypothesis)|it looks like"
    r"|it seems|seems? (?:to|like)|apparently|likely|unless i'm|hypothes|suspicion|suspect)\b"
)
TAKEN_BACK = re.compile(
    r"(?i)\b(?:(?:that|this|it) (?:was|is|turned out to be) (?:wrong|incorrect"
    r"|not (?:it|true|right|the"
    r" (?:cause|problem|issue|reason)))|i was wrong|(?:was|is)n'?t the (?:cause"
    r"|problem|issue|culprit|reason)"
    r"|not the (?:cause|problem|issue|culprit|reason)|scratch that|forget (?:that"
    r"|what i said)|ignore (?:that|my)"
    r"|false alarm|red herring|disregard|(?:is|are|was|were) fine\b|that did(?: not"
    r"|n't) (?:help|work)"
    r"|still (?:fails?|broken|red|happens|there|locked|flaky)|my mistake|i misread|correction)"
)
REPORT = re.compile(
    r"(?i)^\W*(?:all |both )?(?:\d+ |the )?(?:tests?|checks?|specs?|builds?"
    r"|files?)\b[^.]{0,40}\b(?:pass(?:ed|es)?"
    r"|green|changed|written|done|failed|fail)\b[^,;]*$"
)
PASSING = re.compile(
    r"(?i)(?<![\w.])(?:for now|today(?!\()|tomorrow|this time|right now|at the moment|temporar(?:y"
    r"|ily)|just this once"
    r"|in the background|in a moment|quick and dirty|later today|this week|not today|tonight)\b"
)
REDACTED = re.compile(r"\[REDACTED_[A-Z0-9_]+\]|<[A-Z][A-Z0-9_]*_[0-9a-f]{6}>")
"""What holds something that was taken out is about one case."""
QUESTION = re.compile(r"\?\s*[)\"'»]*\s*$")
REQUEST = re.compile(
    r"(?i)^\W*(?:can|could|would|will|please|add|write|fix|make|rename|implement"
    r"|create|show|explain"
    r"|look|check|find|give|tell|help|refactor|update|remove|delete|move|release|get)\b"
)
GOOD = re.compile(
    r"(?i)\b(?:passed|passes|works?(?: now)?|fixed|green|exit (?:status|code) 0"
    r"|no errors?|ok|success(?:ful(?:ly)?)?"
    r"|delivered|done|perfect|great|nice|awesome|yes|exactly|thanks?|thx|yep|cool"
    r"|correct|good|beautiful"
    r"|love it|confirmed|flat|ship it|agreed|0 failed)\b"
)
BAD = re.compile(
    r"(?i)\b(?:fail(?:ed|s|ure)?|error|exception|traceback|exit (?:status"
    r"|code) [1-9]|denied|fatal|panic"
    r"|killed|timed? ?out|refused|cannot|could not|broken|crash(?:ed)?|segfault|oom)\b"
)
TECHNICAL = re.compile(
    r"`[^`]+`|--[a-z][\w-]+|\b\w+[_.]\w+\b|\b[A-Z]{2,}\b|\b\w+\(\)|\b[a-z]+[A-Z]\w+|\d"
)
ACTS = re.compile(
    r"(?i)\b(?:use|using|run|set|setting|add|adding|avoid|never|always|don'?t|do not"
    r"|keep|store|wrap|call|pass|prefer"
    r"|instead|switch(?:ing)?|mov(?:e|ing)|sort(?:ing)?|pin|copy|install"
    r"|load(?:ing)?|open|close|parse|parsing"
    r"|retry|wait|check|test|round|convert|return|hold|must|should|need|fix(?:ed"
    r"|es)?|solved|make sure|go with"
    r"|enable|disable|turn(?:ing)? (?:on|off)|increase|limit|lock|order|before|after|only)\b"
)
GENERAL = re.compile(
    r"(?i)\b(?:always|never|every|each|any|all|whenever|when|if|by default|only"
    r"|instead|rather|because|since"
    r"|so that|otherwise|without|must|should|not)\b"
)
ONE_OFF = re.compile(
    r"(?i)(?:/tmp/|/home/|\b(?:line|row|page|ticket|pr|issue|build|job|run) #?\d+\b"
    r"|\bline \d+|\b[0-9a-f]{7,40}\b"
    r"|\b\d{4}-\d\d-\d\d\b|https?://|\bi\b (?:have |'ve )?(?:just |now )?(?:changed"
    r"|added|replaced|wrote|put|moved|renamed|created|opened))"
)

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_EMPHASIS = re.compile(r"\*\*|(?<!\w)__|__(?!\w)")
_SENTENCE = re.compile(
    r"(?<=[\w)\"'`%»][.!?])[)\"'»]*\s+|(?<=[!?]{2})\s+|\n\s*\n|\n\s*(?:[-*•]|\d+[.)])\s+|\n(?=\S)"
)
_ABBREVIATED = re.compile(r"(?i)\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|dr|mr|ms|st)\.$")

UNFOLDS = re.compile(r"\w: \S+ \S+ \S+|\w; \S+ \S+ \S+|\s[—–-]\s\S+ \S+ \S+")
FIRST_PERSON = re.compile(r"(?i)^\W*(?:i|i'm|i've|i'd|i'll|we'll|we've|let's|my)\b")
ACTED = re.compile(
    r"(?i)\b(?:i(?:'ve| have)? (?:just |also |now )?(?:added|changed|moved|wrote"
    r"|updated|replaced|put|ran|made|set|removed"
    r"|renamed|opened|pushed|committed)|(?:is|are) (?:now |all )?(?:done|in place"
    r"|green|passing|ready|merged|pushed|committed)"
    r"|(?:tests?|suite|checks?) (?:now )?(?:pass|passes|passed|are))\b"
)


IMPERATIVE = re.compile(
    r"(?i)^\W*(?:so |then |also |just |please |and )?(?:add|always|avoid|batch|bind|cache|call"
    r"|check|choose|close|compare|configure|copy|declare|disable|do|don'?t|drop|enable|escape|exclude|exec"
    r"|give|group|hold|import|increase|index|install|keep|let|limit|load|lock|log|make|mark|move"
    r"|mount|name|never|only|open|pass|pin|prefer|preload|put|quote|read|rebuild|register|release"
    r"|remove|replace|reset|restart|return|reuse|round|run|scope|send|set|sort|split|start|stop"
    r"|store|stream|switch|tag|test|treat|turn|use|validate|wait|wrap|write)\b"
)


RULES = re.compile(
    r"(?i)\b(?:from (?:now|here|today) on|going forward|in (?:the )?future|next time|always|never"
    r"|every|everything|everywhere|anything|any|each|all|must|mustn't|only|until|the rule|our rule"
    r"|policy|convention|instead of|rather than|let'?s|go(?:ing)? with|we (?:use|keep|stay|want"
    r"|don't|do not|decided|agreed)|it is,|or it doesn't|no more|not (?:in|on|for|by))\b"
)
"""How people put what is to hold from now on."""
STANDING = re.compile(
    r"(?i)\b(?:from (?:now|here|today) on|going forward|in (?:the )?future|next time|always|never"
    r"|every|everything|everywhere|anything|each|all|any|the rule|rather than|instead of"
    r"|i'll keep)\b"
)
"""What makes a rule of what would be a request."""
PROPOSED = re.compile(
    r"(?i)^\W*(?:i'd|i would|we could|i can|we can|i could)\b.*\b(?:because|since|so that|so|as"
    r"|rather than|instead of|otherwise)\b"
)
"""A proposal with its reason."""
FROM_NOW_ON = re.compile(
    r"(?i)\b(?:from (?:now|here|today) on|going forward|in (?:the )?future|the rule"
    r"|we (?:always|never))\b"
)
REMEDY = re.compile(
    r"(?i)\b(?:must|should|has to|have to|needs? to|instead|rather|better|is enough|so that|let's"
    r"|by \w+ing|avoids?|prevents?|fix(?:es|ed)|removes?|lets|catches|survives?|ensures?|saves?"
    r"|becomes?|drops? to)\b|^\W*(?:yes,? |then )?(?:with|use)\b|\d.* (?:down )?to .*\d"
)
"""How it is put what to do, or what brought it about."""
REFERS = re.compile(
    r"(?i)\b(?:do|keep|make|put|use|apply|like|want|add|turn|write|take|adopt|enforce)\b"
    r"(?: \w+)? (?:that|this|it|both|these|those|the same)\b|\bthat way\b|\bsame for\b"
)
"""How people take up what was said before them."""
EFFECTS = re.compile(
    r"(?i)\b(?:lets?|makes?|keeps?|removes?|avoids?|prevents?|stops?|fixes|means|causes?|turns?"
    r"|guarantees?|survives?|catches|fails?|refuses?|blocks?|forces?|ensures?|protects?|saves?"
    r"|becomes?|costs?|loses?|hides?|breaks?|leaves?|reads?|takes?|serves?|tells?)\b"
)
ASKS = re.compile(r"\?|(?i:^\W*(?:how|why|what|so|and|can|which|where|does|is|are)\b)")
ASKS_HOW = re.compile(r"(?i)\b(?:how|why|what|instead|then|rather|options?|better|should)\b")
STATUS = re.compile(
    r"(?i)^\W*(?:yes,? |ok,? |now )?(?:\d[\d,.]*|zero|no|none|both|all|two|three|four|five|six"
    r"|seven|eight|nine|ten|eleven|twelve|everything|nothing|green|red|it is|it's|that is|that's"
    r"|there is|there are|there's|this is|committed|merged|pushed|deployed|noted|agreed|written"
    r"|stopped|same|installed|changed|renamed|rebased|fixed|exactly)\b"
)
"""How reports of what is the case here begin."""
SYMBOLS = re.compile(r"[=(){}\[\]<>$|;+]")


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of a table, whatever the case of letters."""
    return re.compile(pattern, re.IGNORECASE)


def sentences(text: str) -> list[str]:
    """The sentences of a text, without its blocks of code."""
    return list(_split(text))


@lru_cache(maxsize=2_000)
def _split(text: str) -> tuple[str, ...]:
    plain = _EMPHASIS.sub("", _CODE.sub("\n\n", text[:100_000]))
    found: list[str] = []
    for piece in _SENTENCE.split(plain):
        sentence = piece.strip().lstrip("#>*-• ").strip()
        if not sentence:
            continue
        if found and _ABBREVIATED.search(found[-1]):
            found[-1] = f"{found[-1]} {sentence}"
        else:
            found.append(sentence)
    return tuple(found)

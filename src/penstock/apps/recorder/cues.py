"""How people and models put what they have learned: tables of the ways, by what they tell.

A cause (`the root cause was …`), a rule (`always …`, `never …`), a choice (`let's go with … instead
of …`), a gain (`from 2 s to 90 ms`), a way to do it (`after … run …`).
"""

from typing import NamedTuple

from penstock.apps.recorder.captured import MODEL, PERSON


class Cue(NamedTuple):
    """A way of putting things that says what kind of learning it is, and how surely."""

    category: str
    strength: float
    pattern: str
    roles: tuple[str, ...] = (PERSON, MODEL)


class Trait(NamedTuple):
    """Something that sentences may have, by a name."""

    name: str
    pattern: str


CUES = (
    Cue("bug_fix", 1.0, r"\b(?:root )?cause (?:was|is|turned out|of)\b"),
    Cue("bug_fix", 1.0, r"^\W*(?:the )?(?:root cause|cause|fix|solution|reason)\s*:"),
    Cue(
        "best_practice", 1.0, r"^\W*(?:lesson|takeaway|gotcha|caveat|key insight|rule)s?[^:]{0,20}:"
    ),
    Cue(
        "bug_fix",
        1.0,
        r"\b(?:the )?(?:problem|issue|bug|culprit|leak|failure|error"
        r"|reason)s?\b[^.]{0,60}?\b(?:was|is|were|comes? from"
        r"|came from)\b(?! (?:that )?(?:i|we)(?:'ll| will))",
    ),
    Cue(
        "bug_fix",
        1.0,
        r"\b(?:fix(?:ed|es)?|solved?|resolved?|cured?|repair(?:ed"
        r"|s)?)\b[^.;]{0,80}?\b(?:by|with|is to|was to)\b",
    ),
    Cue("bug_fix", 1.0, r"\bthe fix\b[^.]{0,30}\b(?:is|was)\b"),
    Cue("bug_fix", 0.9, r"\b(?:it )?turn(?:s|ed) out\b"),
    Cue(
        "bug_fix",
        0.9,
        r"\b(?:was|were|is|are|failed|fails|broke|breaks|vanished|hung|hangs|crashed"
        r"|crashes|stalled|leaked|leaks|grew|grows|flaky|missing|wrong|happened"
        r"|happens)\b[^.;]{0,60}\bbecause\b",
    ),
    Cue("bug_fix", 0.8, r"\b(?:caused by|due to|was missing|were missing)\b"),
    Cue("bug_fix", 0.8, r"\bwhich (?:is|was) why\b|\bthat(?:'s| is| was) why\b"),
    Cue(
        "decision",
        1.0,
        r"\b(?:we|i) (?:have )?(?:decided|agreed|chose|settled on|picked|opted)\b",
    ),
    Cue(
        "decision",
        1.0,
        r"\blet'?s (?:go with|use|stick (?:with|to)|keep|standardi[sz]e|make it"
        r"|do)\b[^.]{3,}\b(?:instead|rather|over|not|no|because|since|so that|for)\b",
    ),
    Cue("decision", 0.9, r"\bdecision\s*:"),
    Cue(
        "decision",
        1.0,
        r"\b(?:go|going|went) with\b[^.]{3,}\b(?:instead of|rather than|over|because"
        r"|since)\b",
    ),
    Cue(
        "decision",
        0.9,
        r"\b(?:use|using|used|choose|prefer|switch(?:ed)? to|move[ds]? to"
        r"|stick(?:ing)? (?:to|with)|adopt(?:ed)?)\b[^.]{3,}\b(?:instead of|rather than"
        r"|not [a-z]+|over [a-z]+)\b",
    ),
    Cue(
        "decision",
        0.8,
        r"\bwe (?:never |always |only )?(?:store|keep|use|write|name|call|put|return"
        r"|deploy|support|target|pin)\b[^.]{3,}\b(?:everywhere|here|only|never|always|as"
        r"|in|for)\b",
        (PERSON,),
    ),
    Cue(
        "anti_pattern",
        1.0,
        r"(?:^|[,;:—-] |\bbut |\bso |\band |\bplease )(?:never|do not|don'?t|avoid"
        r"|stop)\b (?!worry|forget|know|think|see|have|need|mind|be afraid|hesitate"
        r"|get me|you)[a-z]{2,}",
    ),
    Cue(
        "anti_pattern",
        0.9,
        r"\b(?:must not|mustn'?t|should not|shouldn'?t|should never|must never"
        r"|is a bad idea|is dangerous|is unsafe)\b",
    ),
    Cue("best_practice", 1.0, r"(?:^|[,;:—-] |\bso |\band |\bplease )always\b [a-z]{2,}"),
    Cue(
        "best_practice",
        1.0,
        r"\b(?:should|must|needs? to|have to|has to) (?:always|only|first)\b",
    ),
    Cue("best_practice", 0.9, r"\b(?:make sure|be sure|remember|don'?t forget) (?:to|that|you)\b"),
    Cue(
        "best_practice",
        0.9,
        r"\b(?:rule of thumb|best practice|the rule|good habit|the convention"
        r"|our convention|the habit)\b[^?]*$",
    ),
    Cue(
        "best_practice",
        0.9,
        r"(?:^|[,;:—-] )(?:prefer|keep|round|validate|check|pin|set|quote|close|hold|log"
        r"|test|compare|parse|escape|use)\b [^.?]{8,}\b(?:so that|because|since"
        r"|otherwise|or else|only|never|instead|rather|before|when|whenever|every)\b",
    ),
    Cue(
        "optimization",
        1.0,
        r"\bfrom \S+(?: ?(?:ms|s|sec|seconds?|min|minutes?|hours?|h|mb|gb|kb|kib|mib|%"
        r"|queries|rows|requests|calls))?\b[^.]{0,25}\b(?:down )?to (?:about |under "
        r"|around |roughly )?\S*\d",
    ),
    Cue(
        "optimization",
        1.0,
        r"\b(?:cut|cuts|reduc(?:ed|es)|dropp?(?:ed|s)|shav(?:ed|es)|sav(?:ed|es)"
        r"|halv(?:ed|es)|speeds? up|sped up|brings?"
        r"|brought)\b[^.]{3,}\b(?:\d+(?:[.,]\d+)? ?(?:ms|s|sec|seconds?|min|minutes?"
        r"|hours?|mb|gb|kb|%|x|times)|by half|in half|(?:two|three|four|five|ten"
        r"|hundred)(?:fold| times))",
    ),
    Cue(
        "optimization",
        0.9,
        r"\b\d+(?:[.,]\d+)?(?:x| times) (?:faster|slower|smaller|less|fewer|cheaper)\b",
    ),
    Cue(
        "optimization",
        0.8,
        r"\b(?:is|are|was|runs?|gets?|makes? [^.]{2,40}) (?:much |far |a lot "
        r"|way )?(?:faster|cheaper|smaller)\b[^.]*\b(?:because|since|when|if|with|by"
        r"|than)\b",
    ),
    Cue("tool_usage", 1.0, r"`[^`\n]*\s--?[a-z][^`\n]*`"),
    Cue(
        "tool_usage",
        0.9,
        r"\b(?:use|run|pass|call|try|with|add|needs?|takes?|want"
        r"|add)\b (?:the )?(?:flag |option )?`?[\w./-]*\s?--?[a-z][\w-]+",
    ),
    Cue(
        "tool_usage",
        0.8,
        r"\b(?:use|run|running) `[^`\n]{3,}` (?:to|for|when|if|instead|and|before|after"
        r"|so)\b|\buse `[^`\n]{3,}`[:,;]",
    ),
    Cue(
        "tool_usage",
        0.8,
        r"\b(?:use|run) (?:git|npm|pnpm|yarn|pip|uv|poetry|docker|kubectl|make|cargo|go"
        r"|psql|pytest|terraform|helm|gh|curl|jq|rg|grep|sed|ssh|aws"
        r"|gcloud)\b[^.]{3,}\b(?:to|for|so that|instead|when|if)\b",
    ),
    Cue(
        "workflow",
        1.0,
        r"\b(?:before|after|whenever|every time|each time"
        r"|when(?:ever)? you)\b[^.]{4,}\b(?:run|re-?run|regenerate|rebuild|restart|bump"
        r"|migrate|commit|tag|update|check|test|deploy|execute|reload|clear|flush"
        r"|invalidate)\b",
    ),
    Cue(
        "workflow",
        1.0,
        r"\b(?:run|re-?run|regenerate|rebuild|restart|bump|migrate|commit|tag|update"
        r"|deploy|execute|reload|clear|flush|do)\b[^.]{3,}\b(?:before|after|whenever"
        r"|every time|each time)\b (?:you |we |every |each |any |the |a |chang|merg"
        r"|releas|deploy|push|committ|runn|test|edit|add|type)",
    ),
    Cue(
        "workflow",
        1.0,
        r"\b(?:the order|the steps?|the procedure|the process|the sequence"
        r"|the way to \w+|to (?:release|deploy|roll back|ship|publish|migrate|set up"
        r"|upgrade))\b[^.]{0,50}\b(?:is|are|:|first|run|go)\b",
    ),
    Cue("workflow", 0.9, r"\bfirst\b[^.]{4,}\b(?:then|afterwards|and only then|next)\b"),
    Cue(
        "pattern",
        1.0,
        r"\b(?:in|across|throughout) (?:this|our|the) (?:code ?base|repo(?:sitory)?"
        r"|project|service|app|team|module|package)\b",
    ),
    Cue(
        "pattern",
        0.9,
        r"\b(?:every|each|all)\b [^.]{3,50}\b(?:returns?|takes?|goes|go|lives?|has|have"
        r"|must|is|are|needs?|extends?|inherits?|implements?|uses?|starts?|ends?)\b",
    ),
    Cue(
        "pattern",
        0.9,
        r"\b(?:whenever|when(?:ever)? an? \w+|if an? \w+)\b[^.]{4,}(?:,| then )[^.]{4,}",
    ),
    Cue("pattern", 0.8, r"\b(?:the pattern|idempotent|by convention|by default)\b"),
    Cue(
        "pattern",
        0.8,
        r"\b(?:lives?|is kept|are kept|belongs?) (?:in|on|under|per"
        r"|with)\b[^.]{3,}\b(?:so|and|not|because)\b",
    ),
)
"""Ways of putting things, by what they tell; the strongest that fits counts."""

TRAITS = (
    Trait(
        "negates",
        r"\b(?:not|instead|rather|but|only|unless|until|without|never|no longer|neither"
        r"|even though|although|except)\b",
    ),
    Trait(
        "reasons",
        r"\b(?:because|since|so|therefore|which|means|meaning|why|due to|thus|hence"
        r"|as long as|that way|otherwise)\b",
    ),
    Trait(
        "times",
        r"\b(?:when|whenever|every|each|once|always|by default|per|any|if|while"
        r"|as soon as|after|before)\b",
    ),
    Trait(
        "demands",
        r"\b(?:must|should|has to|have to|needs?|requires?|cannot|can't|ought"
        r"|want(?:s)? to be)\b",
    ),
    Trait(
        "behaves",
        r"\b(?:expects?|ignores?|treats?|holds?|keeps?|returns?|drops?|caches?|locks?"
        r"|blocks?|resolves?|falls? back|overrides?"
        r"|inherits?|compares?|counts?|happens?|depends?|defaults?|assumes?|allows?"
        r"|prevents?|breaks?|leaks?|reads?|writes?"
        r"|sends?|waits?|retries|retry|evicts?|expires?|wins?|loses?|silently|swallows?"
        r"|rewrites?|rounds?|truncates?|reuses?"
        r"|doubles?|grows?|skips?|invalidates?|lets?|gives?|makes?|matters?|applies"
        r"|apply|stays?|survives?|shares?)\b",
    ),
    Trait(
        "tells_past",
        r"\b(?:was|were|had|got|kept|held|pointed|ended up|never ran|came|went|used to"
        r"|stopped|started)\b",
    ),
    Trait(
        "gains",
        r"\d[\d.,]*\s?(?:ms|s|sec\w*|min\w*|hours?|h|mb|gb|kb|%|x|times|queries|rows"
        r"|requests|calls|k)\b.*\b\d",
    ),
)
"""What sentences have that explain how something is, without saying that they do."""
KINDS = (
    Trait(
        "optimization",
        r"\b(?:faster|slower|latency|throughput|memory|speed|p9\d|queries|cpu|cost"
        r"|cheap\w*|seconds?|ms|minutes?|gb|mb)\b.*\d|\d.*\b(?:faster|slower|queries"
        r"|seconds?|ms|minutes?|gb|mb)\b",
    ),
    Trait(
        "anti_pattern",
        r"\b(?:never|avoid|don'?t|do not|dangerous|unsafe|must not|should not|shouldn'?t"
        r"|bad idea)\b",
    ),
    Trait(
        "bug_fix",
        r"\b(?:fix\w*|fail\w*|error\w*|broke\w*|wrong|stale|missing|race|leak\w*"
        r"|deadlock\w*|crash\w*|lost|twice|duplicate\w*|hang\w*|stuck|bug|corrupt\w*"
        r"|timed? ?out|off by|silently|null|none|nan|undefined|overflow\w*)\b",
    ),
    Trait("tool_usage", r"`[^`]+`|\s--[a-z]|\b(?:flag|option|command|cli|plugin)\b"),
    Trait(
        "workflow",
        r"\b(?:before|after|then|release|deploy\w*|merg\w*|migrat\w*|pipeline|ci|commit"
        r"|branch|rollback|review)\b",
    ),
    Trait("decision", r"\b(?:instead of|rather than|chose|choose|keep|stick|our|policy|we)\b"),
    Trait("best_practice", r"\b(?:always|should|must|make sure|prefer|has to|have to|needs? to)\b"),
)
"""The kind of learning that an explanation is, by its words; any other is a pattern."""

"""How a task ended, judged by what its turns show: tools, and what the user said of it.

What a person says counts most: a rating, or else words such as "thanks, that works" and "still
broken". Without any, the tools decide: how many succeeded, and whether the last one did.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from penstock.apps.agents.learning.records import FAILURE, PARTIAL, SUCCESS, UNKNOWN, Metrics
from penstock.apps.agents.sessions.records import Turn

QUIET_MS = 30 * 60_000
"""A user who comes back after so long asks for something new."""
LONGEST_FEEDBACK = 300
LONGEST_TASK = 4_000
GOOD_SHARE = 0.8
POSITIVE = "positive"
NEGATIVE = "negative"
GOOD_RATING = 4
BAD_RATING = 2

_NEGATIVE = re.compile(
    r"""\b(?:
        (?:does|did|do|is|was|are|has|have|will|would|can)(?:n['’]t|\ not)\ (?:\w+\ ){0,2}
            (?:work|help|run|right|correct|fix|fixed|solve|solved|good|true|what\ i)
        | not\ (?:working|right|correct|good|great|helpful|fixed|solved|true|quite|what\ i)
        | still\ (?:\w+\ ){0,2}(?:broken|fail\w*|wrong|crash\w*|error\w*|missing|not|the\ same)
        | (?:that|this|it)(?:['’]s|\ is|\ was)\ (?:\w+\ )?(?:wrong|broken|incorrect|useless|worse)
        | (?:got|it)\ worse | never\ mind | give\ up | made\ (?:that|it)\ up | hallucinat\w+
        | (?:revert|undo)\ (?:that|this|it) | try\ again | wrong\ (?:file|answer|one)
        | useless | no\ use
    )\b | ^no[,.!\s]""",
    re.IGNORECASE | re.VERBOSE,
)
_POSITIVE = re.compile(
    r"""\b(?:
        thanks? | thank\ you | thx | perfect(?:ly)? | great | excellent | awesome | brilliant
        | lovely | nice(?:\ work|\ one)? | well\ done | good\ (?:job|work) | lgtm | solved
        | looks\ good
        | (?:that|this|it|now|all|everything)\ (?:\w+\ )?(?:works|worked|passes|helped|helps)
        | works\ (?:now|fine|well|great|again) | exactly\ (?:what|right)
        | that['’]s\ (?:it|right|correct) | that\ is\ (?:it|right|correct) | correct
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)


class Judged(Struct, frozen=True):
    """A verdict, why it is that one, and the figures it rests on."""

    verdict: str
    reason: str
    metrics: Metrics


def split(turns: Sequence[Turn]) -> list[list[Turn]]:
    """Split a session into its tasks: by the task that turns name, or where a user comes back."""
    tasks: list[list[Turn]] = []
    current: object = None
    for turn in turns:
        named = turn.metadata.get("task")
        begins = not tasks
        if named is not None:
            begins = begins or (current is not None and named != current)
            current = named
        elif turn.role == "user" and tasks and turn.at - tasks[-1][-1].at > QUIET_MS:
            begins, current = True, None
        if begins:
            tasks.append([])
        tasks[-1].append(turn)
    return tasks


def task_text(turns: Sequence[Turn]) -> str:
    """What the user asked for: what is embedded, without a word of how it ended."""
    asked = [
        turn.content.strip()
        for turn, answered in _with_answered(turns)
        if turn.role == "user" and (not answered or said_of(turn) is None)
    ]
    return with_skills("\n".join(text for text in asked if text), skills_of(turns))


def with_skills(asked: str, skills: Sequence[str]) -> str:
    """A task in words, with the skills it is done with: they tell tasks apart, too."""
    used = f" ({', '.join(skills)})" if skills else ""
    return asked[:LONGEST_TASK] + used


def skills_of(turns: Sequence[Turn]) -> list[str]:
    """The skills that were used, in the order in which they first were."""
    return list(dict.fromkeys(turn.skill_id for turn in turns if turn.skill_id))


def said_of(turn: Turn) -> str | None:
    """What a user's turn says of what came before it: positive, negative, or nothing."""
    if turn.role != "user" or len(turn.content) > LONGEST_FEEDBACK:
        return None
    if _NEGATIVE.search(turn.content):
        return NEGATIVE
    return POSITIVE if _POSITIVE.search(turn.content) else None


def rated(turn: Turn) -> str | None:
    """What was given as feedback on a turn: a word, or a rating from 1 to 5."""
    given = turn.metadata.get("feedback")
    if isinstance(given, bool):
        return POSITIVE if given else NEGATIVE
    if isinstance(given, int | float):
        if given >= GOOD_RATING:
            return POSITIVE
        return NEGATIVE if given <= BAD_RATING else None
    return given if given in (POSITIVE, NEGATIVE) else None


def judge(turns: Sequence[Turn]) -> Judged:
    """Judge how a task ended."""
    ratings = [given for turn in turns if (given := rated(turn)) is not None]
    words = [
        said
        for turn, answered in _with_answered(turns)
        if answered and (said := said_of(turn)) is not None
    ]
    ends = [bool(turn.succeeded) for turn in turns if turn.succeeded is not None]
    skills: dict[str, list[int]] = {}
    for turn in turns:
        if turn.skill_id and turn.succeeded is not None:
            counts = skills.setdefault(turn.skill_id, [0, 0])
            counts[0] += turn.succeeded
            counts[1] += 1
    feedback = ratings or words
    metrics = Metrics(
        turns=len(turns),
        tool_calls=len(ends),
        tool_failures=ends.count(False),
        duration_ms=max(0, turns[-1].at - turns[0].at) if turns else 0,
        feedback=feedback,
        skills=skills,
    )
    verdict, reason = _by_feedback(feedback, ends, "rating" if ratings else "words")
    return Judged(verdict, reason, metrics)


def _by_feedback(feedback: list[str], ends: list[bool], how: str) -> tuple[str, str]:
    if not feedback:
        return _by_tools(ends)
    last = feedback[-1]
    told = f"the user's {how} " + ("are" if how == "words" else "is")
    if last == POSITIVE:
        return SUCCESS, f"{told} {POSITIVE}"
    if POSITIVE in feedback:
        return PARTIAL, f"{told} {NEGATIVE} at the end and {POSITIVE} before"
    return FAILURE, f"{told} {NEGATIVE}"


def _by_tools(ends: list[bool]) -> tuple[str, str]:
    if not ends:
        return UNKNOWN, "neither tools nor the user tell how it ended"
    share = ends.count(True) / len(ends)
    told = f"{ends.count(True)} of {len(ends)} uses of tools succeeded"
    if ends[-1] and share >= GOOD_SHARE:
        return SUCCESS, f"{told}, the last one included"
    if not any(ends):
        return FAILURE, "no use of a tool succeeded"
    if not ends[-1] and share < 1 / 2:
        return FAILURE, f"{told}, and the last one failed"
    return PARTIAL, f"{told}, and the last one {'succeeded' if ends[-1] else 'failed'}"


def _with_answered(turns: Sequence[Turn]) -> list[tuple[Turn, bool]]:
    """Each turn, and whether the agent had said or done something before it."""
    answered = False
    found: list[tuple[Turn, bool]] = []
    for turn in turns:
        found.append((turn, answered))
        answered = answered or turn.role in ("assistant", "tool")
    return found

"""The labelled set for memory is sound, and memory answers it better than plain vectors do."""

from proof.memory import __main__ as proof
from proof.memory.check import main as check


def share(scores: list[proof.Score], depth: int) -> float:
    return sum(score.recall[depth] for score in scores) / len(scores)


def astray(scores: list[proof.Score]) -> float:
    judged = [score.astray for score in scores if score.astray is not None]
    return sum(judged) / len(judged)


def test_the_set_has_no_faults() -> None:
    assert check() == 0


async def test_memory_finds_more_than_plain_vectors_and_is_led_astray_less() -> None:
    plain, _ = await proof.measure(proof.WAYS[0], turns=False)
    whole, (found, right, _) = await proof.measure(proof.WAYS[2], turns=False)
    for depth in proof.DEPTHS:
        assert share(whole, depth) > share(plain, depth)
    assert share(whole, 5) > 0.86
    assert astray(whole) < 0.2 < astray(plain)
    assert right / found > 0.7

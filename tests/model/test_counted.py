from penstock.model.errors import QueueFull
from penstock.model.wording import counted, listed


def test_one_is_singular_and_all_else_plural() -> None:
    assert [counted(n, "job") for n in (0, 1, 2, 2_000)] == [
        "0 jobs",
        "1 job",
        "2 jobs",
        "2,000 jobs",
    ]


def test_a_full_queue_of_one_speaks_grammar() -> None:
    assert "(1 job queued, its limit is 1)" in str(QueueFull("mail", 1, 1, 30))
    assert "limits set queue 'my mail' --depth 2`" in str(QueueFull("my mail", 1, 1, 30))


def test_of_many_names_the_first_few_are_listed() -> None:
    assert listed([]) == ""
    assert listed(list("abcde")) == "a, b, c, d, e"
    assert listed(list("abcdefgh")) == "a, b, c, d, e and 3 more"

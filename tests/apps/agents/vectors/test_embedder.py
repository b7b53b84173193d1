"""The default embedder: the mean of what a text's tokens mean, for any text at once."""

import numpy
import pytest

from penstock import Penstock
from penstock.apps.agents.extension import EmbedderSettings
from penstock.apps.agents.vectors.embedder import (
    WordLlama,
    embed,
    embedder_for,
    embedder_of,
    load_embedder,
)
from penstock.model.errors import InvalidOption
from tests.apps.agents.vectors.conftest import Make
from tests.apps.agents.vectors.given import Tiny

DEFAULT = EmbedderSettings()


def test_texts_that_mean_alike_are_near_each_other() -> None:
    texts = ["She lives in Paris.", "Her home is in Paris.", "The pump needs a new valve."]
    one, alike, other = load_embedder(DEFAULT).embed(texts)
    assert one @ alike > 0.6 > 0.3 > one @ other


def test_every_vector_has_length_1_and_does_not_depend_on_the_others() -> None:
    embedder = load_embedder(DEFAULT)
    texts = ["a", "the same text", "a longer one " * 50]
    together = embedder.embed(texts)
    assert together.shape == (3, 256)
    assert together.dtype == numpy.float32
    assert numpy.linalg.norm(together, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    alone = numpy.concatenate([embedder.embed([text]) for text in texts])
    assert together.tolist() == alone.tolist()


def test_it_says_what_its_library_says() -> None:
    wordllama = pytest.importorskip("wordllama")
    from pathlib import Path

    theirs = wordllama.WordLlama.load(
        cache_dir=Path(wordllama.__file__).parent, disable_download=True
    ).embed(["Water flows down.", "Tea"], norm=True)
    assert load_embedder(DEFAULT).embed(["Water flows down.", "Tea"]) == pytest.approx(
        theirs, abs=1e-5
    )


def test_a_text_without_words_is_all_zeros_and_a_huge_one_is_cut() -> None:
    embedder = load_embedder(DEFAULT)
    nothing, huge = embedder.embed(["", "word " * 400_000])
    assert not nothing.any()
    assert numpy.linalg.norm(huge) == pytest.approx(1, abs=1e-5)


def test_fewer_dimensions_are_another_model() -> None:
    small = WordLlama(64)
    assert (small.model, small.dimensions) == ("wordllama-64", 64)
    with pytest.raises(InvalidOption, match="must be 64, 128 or 256"):
        WordLlama(100)


async def test_the_settings_name_the_embedder_and_a_former_one(make: Make) -> None:
    async with make("sqlite", "usearch", former_embedder={"settings": {"dimensions": 64}}) as app:
        assert isinstance(embedder_of(app), Tiny)
        assert embedder_of(app) is embedder_of(app)
        assert embedder_for(app, "tiny-8") is embedder_of(app)
        former = embedder_for(app, "wordllama-64")
        assert isinstance(former, WordLlama)
        assert embedder_for(app, "nobody") is None


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (EmbedderSettings(provider="unheard"), "must be wordllama, or a module:name"),
        (EmbedderSettings(settings={"colour": 1}), "must be settings that wordllama takes"),
    ],
)
def test_settings_that_make_no_embedder_are_refused(
    settings: EmbedderSettings, problem: str
) -> None:
    with pytest.raises(InvalidOption, match=problem):
        load_embedder(settings)


async def test_many_texts_are_embedded_in_a_thread(file_app: Penstock) -> None:
    embedder = embedder_of(file_app)
    texts = [f"text {n}" for n in range(40)]
    assert (await embed(embedder, texts)).tolist() == embedder.embed(texts).tolist()

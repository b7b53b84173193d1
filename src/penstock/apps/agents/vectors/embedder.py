"""Embedders: texts in, vectors of length 1 out. The default one has its weights in its wheel."""

import asyncio
import logging
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from penstock.extension import load
from penstock.model.errors import InvalidOption, MissingExtra

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from penstock.app.penstock import Penstock
    from penstock.apps.agents.extension import AgentsSettings, EmbedderSettings

    Vectors = NDArray[numpy.float32]

FEW = 32
"""So many texts are embedded at once without a thread."""
MOST_CHARACTERS = 32_768
"""What stands behind them in a text adds next to nothing to its mean."""


class Embedder(Protocol):
    """Turns texts into vectors.

    `model` names what makes them: vectors of different models are never compared. A provider of
    one's own is called with `[penstock.agents.embedder.settings]` as keywords, and has these three.
    """

    @property
    def model(self) -> str:
        """Name the model, and everything that changes its vectors."""
        ...

    @property
    def dimensions(self) -> int:
        """Return how many numbers a vector has."""
        ...

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """Return an array (texts, dimensions) of float32, each row of length 1.

        A text in which there is nothing to embed has a row of zeros. It may take long: threads
        call it, several at once.
        """
        ...


def embedder_of(app: "Penstock") -> Embedder:
    """Return the embedder that the settings name; it is loaded once in a process."""
    settings: AgentsSettings = app.extensions.settings("agents")
    return load_embedder(settings.embedder)


def embedder_for(app: "Penstock", model: str) -> Embedder | None:
    """Return the embedder of a model, of those that the settings name; None for any other.

    Until `embedding-reindex` has switched to another model, texts are sought by the former one.
    """
    settings: AgentsSettings = app.extensions.settings("agents")
    for named in (settings.embedder, settings.former_embedder):
        if named is not None and (found := load_embedder(named)).model == model:
            return found
    return None


async def embed(embedder: Embedder, texts: Sequence[str]) -> "Vectors":
    """Embed texts without holding up the event loop."""
    if len(texts) <= FEW and isinstance(embedder, WordLlama) and embedder.is_loaded:
        return embedder.embed(texts)
    return await asyncio.to_thread(embedder.embed, texts)


def load_embedder(settings: "EmbedderSettings") -> Embedder:
    """Return the embedder of some settings."""
    return _made(settings.provider, msgspec.json.encode(settings.settings, order="deterministic"))


@cache
def _made(provider: str, encoded: bytes) -> Embedder:
    settings: dict[str, Any] = msgspec.json.decode(encoded)
    if provider == "wordllama":
        make: Any = WordLlama
    elif ":" in provider:
        make = load(provider)
    else:
        raise InvalidOption("embedder.provider", provider, "wordllama, or a module:name")
    try:
        made: Embedder = make(**settings)
    except TypeError as error:
        expected = f"settings that {provider} takes ({error})"
        raise InvalidOption("embedder.settings", sorted(settings), expected) from error
    return made


class WordLlama:
    """The mean of what each token of a text means; nothing is fetched, nothing leaves."""

    def __init__(self, dimensions: int = 256) -> None:
        if dimensions not in (64, 128, 256):
            raise InvalidOption("embedder.settings.dimensions", dimensions, "64, 128 or 256")
        self.dimensions = dimensions
        self.model = f"wordllama-{dimensions}"

    @property
    def is_loaded(self) -> bool:
        """Tell whether the weights are in memory, so that a few texts take no time."""
        return "_loaded" in self.__dict__

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """Return an array (texts, dimensions) of float32, each row of length 1."""
        import numpy

        tokenizer, weights = self._loaded
        encoded = tokenizer.encode_batch_fast(
            [text[:MOST_CHARACTERS] for text in texts], add_special_tokens=False
        )
        found = numpy.zeros((len(texts), self.dimensions), numpy.float32)
        for row, each in enumerate(encoded):
            if each.ids:
                weights.take(each.ids, axis=0, mode="clip").sum(axis=0, out=found[row])
        lengths = numpy.linalg.norm(found, axis=1, keepdims=True)
        numpy.divide(found, lengths, out=found, where=lengths > 0)
        return found

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        """The tokenizer and a row of weights for each token; a mean needs no more than a sum."""
        import numpy

        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        try:
            import wordllama  # type: ignore[import-untyped]
        except ImportError as error:
            raise MissingExtra("agents", "wordllama") from error
        finally:  # it sets up logging for everybody
            root.handlers[:] = handlers
            root.setLevel(level)
        loaded = wordllama.WordLlama.load(
            cache_dir=Path(wordllama.__file__).parent, disable_download=True
        )
        loaded.tokenizer.no_padding()
        weights = loaded.embedding[:, : self.dimensions]
        return loaded.tokenizer, numpy.ascontiguousarray(weights, numpy.float32)

"""Loads what jobs of agents need into the process that those are forked from that will be killed.

Each would load it anew otherwise, which takes longer than its job.
"""

import numpy
import pytest
import usearch.index

import penstock.apps.agents.jobs
import penstock.apps.agents.namespace
import penstock.apps.agents.vectors.batch
import penstock.apps.agents.vectors.pgvector_store
import penstock.store.postgres.store
import penstock.store.sqlite.store
import penstock.testing
import penstock.worker.worker
from penstock.app.extensions import installed
from penstock.apps.agents.extension import EmbedderSettings
from penstock.apps.agents.vectors.embedder import WordLlama, load_embedder

__all__ = ["numpy", "penstock", "pytest", "usearch"]

installed()
embedder = load_embedder(EmbedderSettings())
assert isinstance(embedder, WordLlama)
embedder.embed([])

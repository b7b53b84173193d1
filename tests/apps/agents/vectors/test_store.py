"""Vectors: kept in the caller's commit, found by whoever may see them, whatever searches."""

import numpy
import pytest

from penstock import Penstock
from penstock.apps.agents.vectors import rows as vector_rows
from penstock.apps.agents.vectors.store import BadVector, Entry, ModelChanged, vectors_of
from tests.apps.agents.raw import rows
from tests.apps.agents.vectors.given import put, remove, store_of, unit


async def test_the_nearest_vectors_are_found_with_their_cosines(app: Penstock) -> None:
    known = unit(40)
    await put(app, known)
    hits = await vectors_of(app).search("docs", known[7], 5, tenant="acme")
    cosines = known @ known[7]
    expected = sorted(range(40), key=lambda n: -cosines[n])[:5]
    assert [hit.id for hit in hits] == [f"n{n}" for n in expected]
    assert [hit.score for hit in hits] == pytest.approx([cosines[n] for n in expected], abs=1e-6)
    assert hits[0].metadata == {"n": 7}


async def test_the_rows_hold_the_bytes_of_each_vector(app: Penstock) -> None:
    known = unit(2)
    await put(app, known, text="as it was", user_id="ada")
    stored = rows(app, "SELECT id, vector, text, user_id, model FROM agents_vectors ORDER BY id")
    expected = [(f"n{n}", known[n].tobytes(), "as it was", "ada", "known") for n in range(2)]
    assert [(i, bytes(v), t, u, m) for i, v, t, u, m in stored] == expected


async def test_a_vector_is_found_from_its_commit_on_and_never_without_it(app: Penstock) -> None:
    known = unit(3)
    vectors = vectors_of(app)
    await put(app, known[:1])
    await vectors.search("docs", known[1], tenant="acme")

    class Refused(Exception):
        pass

    def work(tx: object) -> None:
        vectors.put(
            tx, "docs", [Entry(id="lost", vector=known[1], tenant_id="acme", model="known")]
        )
        raise Refused

    with pytest.raises(Refused):
        await app.transact(work)
    assert [hit.id for hit in await vectors.search("docs", known[1], tenant="acme")] == ["n0"]
    await put(app, known[:2])
    hits = await vectors.search("docs", known[1], tenant="acme")
    assert hits[0].id == "n1"


async def test_a_vector_of_the_same_id_replaces_the_former(app: Penstock) -> None:
    known = unit(12)
    await put(app, known[:10])
    await vectors_of(app).search("docs", known[0], tenant="acme")
    await put(app, known[11:])
    hits = await vectors_of(app).search("docs", known[11], 10, tenant="acme")
    assert hits[0].id == "n0"
    assert hits[0].score == pytest.approx(1, abs=1e-6)
    assert len({hit.id for hit in hits}) == 10


async def test_a_removed_vector_is_found_no_more(app: Penstock) -> None:
    known = unit(10)
    await put(app, known)
    await vectors_of(app).search("docs", known[4], tenant="acme")
    assert await remove(app, "n4", "n5", "unknown") == 2
    found = {hit.id for hit in await vectors_of(app).search("docs", known[4], 10, tenant="acme")}
    assert found == {f"n{n}" for n in (0, 1, 2, 3, 6, 7, 8, 9)}
    assert await remove(app, "n4") == 0


async def test_a_tenant_finds_its_own_vectors_only(app: Penstock) -> None:
    known = unit(6)
    await put(app, known[:3], tenant="north")
    await put(app, known[3:], tenant="south")
    vectors = vectors_of(app)
    found = await vectors.search("docs", known[0], 10, tenant="south")
    assert {hit.tenant_id for hit in found} == {"south"}
    assert len(found) == 3
    assert await vectors.search("docs", known[0], tenant="west") == []
    everywhere = await vectors.search("docs", known[0], 10, tenant=None)
    assert (everywhere[0].tenant_id, len(everywhere)) == ("north", 6)


async def test_a_user_finds_what_is_theirs_and_what_is_nobodys(app: Penstock) -> None:
    known = unit(3)
    entries = [
        Entry(id=who or "all", vector=vector, tenant_id="acme", user_id=who, model="known")
        for who, vector in zip(("ada", "bob", None), known, strict=True)
    ]
    vectors = vectors_of(app)
    await app.transact(lambda tx: vectors.put(tx, "docs", entries))
    found = await vectors.search("docs", known[1], tenant="acme", user="ada")
    assert {hit.id for hit in found} == {"ada", "all"}


async def test_a_user_with_few_vectors_among_many_finds_all_of_them(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_rows, "OF_A_USER", 10)
    known = unit(100)
    far = numpy.argsort(known @ known[0])[:2].tolist()
    entries = [
        Entry(
            id=f"n{n}",
            vector=vector,
            tenant_id="acme",
            user_id={far[0]: "ada", far[1]: None}.get(n, "bob"),
            model="known",
        )
        for n, vector in enumerate(known)
    ]
    vectors = vectors_of(app)
    await app.transact(lambda tx: vectors.put(tx, "docs", entries))
    found = await vectors.search("docs", known[0], 5, tenant="acme", user="ada")
    assert {hit.id for hit in found} == {f"n{n}" for n in far}


async def test_a_search_goes_on_until_enough_hits_count(app: Penstock) -> None:
    known = unit(200)
    await put(app, known)
    vectors = vectors_of(app)
    wanted = [f"n{n}" for n in range(190, 200)]
    nearest = await vectors.exact("docs", known[0], 3, tenant="acme", keep=lambda h: h.id in wanted)
    found = await vectors.search("docs", known[0], 3, tenant="acme", keep=lambda h: h.id in wanted)
    assert [hit.id for hit in found] == [hit.id for hit in nearest]
    assert len(found) == 3


async def test_a_search_that_meets_too_few_that_count_compares_all(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_rows, "MOST", 20)
    known = unit(100)
    await put(app, known)
    last = str(numpy.argmin(known @ known[0]))
    found = await vectors_of(app).search(
        "docs", known[0], 1, tenant="acme", keep=lambda hit: hit.id == f"n{last}"
    )
    assert [hit.id for hit in found] == [f"n{last}"]


async def test_neighbours_of_many_are_found_at_once(app: Penstock) -> None:
    known = unit(30)
    await put(app, known)
    found = await vectors_of(app).neighbours("docs", known[:3], 4, tenant="acme")
    for n, each in enumerate(found):
        expected = numpy.argsort(-(known @ known[n]))[:4]
        assert [id_ for id_, _ in each] == [f"n{m}" for m in expected]
        assert each[0][1] == pytest.approx(1, abs=0.01)
    one = await vectors_of(app).neighbours("docs", known[:1], 2, tenant="acme")
    assert [id_ for id_, _ in one[0]] == [id_ for id_, _ in found[0][:2]]
    assert await vectors_of(app).neighbours("none", known[:1], tenant="acme") == [[]]


async def test_vectors_are_read_by_their_ids(app: Penstock) -> None:
    known = unit(3)
    await put(app, known)
    await remove(app, "n2")
    found = await vectors_of(app).get("docs", ["n1", "n2", "n9"], tenant="acme")
    assert found.keys() == {"n1"}
    assert found["n1"].tolist() == known[1].tolist()


@pytest.mark.parametrize(
    ("vector", "problem"),
    [
        ([0.0] * 8, "its length is 0.000"),
        ([float("nan")] * 8, "its length is nan"),
        ([[1.0]], "it has the shape"),
        ([1.0, 0.0], "it has 2 dimensions, and others of known 8"),
    ],
)
async def test_what_is_no_vector_of_length_1_is_refused(
    file_app: Penstock, vector: list[float], problem: str
) -> None:
    await put(file_app, unit(1))
    with pytest.raises(BadVector, match=problem):
        await put(file_app, [numpy.array(vector, numpy.float32)])


async def test_a_search_for_another_number_of_dimensions_is_refused(file_app: Penstock) -> None:
    await put(file_app, unit(1))
    with pytest.raises(BadVector, match=r"it has the shape \(3,\), and 'docs' \(8,\)"):
        await vectors_of(file_app).search("docs", unit(1, 3)[0], tenant="acme")


async def test_a_text_is_sought_by_the_model_that_the_vectors_are_of(file_app: Penstock) -> None:
    await put(file_app, unit(1), model="another")
    with pytest.raises(ModelChanged, match="are of model another and the embedder is tiny-8; run"):
        await vectors_of(file_app).search_text("docs", "tea", tenant="acme")


async def test_what_is_put_again_unchanged_stays_as_it_was(app: Penstock) -> None:
    statement = "SELECT id, number, revision, updated_at FROM agents_vectors ORDER BY id"
    await put(app, unit(3))
    before = rows(app, statement)
    await put(app, unit(3))
    assert rows(app, statement) == before


async def test_recall_is_measured_and_kept(app: Penstock) -> None:
    await put(app, unit(50))
    assert await vectors_of(app).recall("docs", "acme", sample=10) == 1
    [info] = await vectors_of(app).indexes()
    assert (info.recall, info.count, info.measured_at) == (1, 50, app.store.clock.now())
    assert await vectors_of(app).recall("docs", "nobody") is None


async def test_a_deleted_share_above_the_threshold_is_compacted(app: Penstock) -> None:
    await put(app, unit(10))
    await remove(app, "n0", "n1")
    vectors = vectors_of(app)
    assert not await vectors.optimise("docs", "acme", 0.8)  # exactly a fifth is not more
    await remove(app, "n2")
    assert await vectors.optimise("docs", "acme", 0.8)
    [(left,)] = rows(app, "SELECT count(*) FROM agents_vectors")
    [info] = await vectors.indexes()
    assert (left, info.count, info.deleted, info.generation) == (7, 7, 0, 2)
    found = await vectors.search("docs", unit(10)[5], 10, tenant="acme")
    assert len(found) == 7


async def test_the_store_is_the_one_of_the_application(app: Penstock) -> None:
    assert vectors_of(app) is app.extensions.namespace("agents").vectors
    assert store_of(app) is vectors_of(app)

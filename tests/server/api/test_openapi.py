"""Whether the API's document is complete enough to make a client of it."""

import json
import re
from collections import Counter
from typing import Any

from fastapi import FastAPI
from httpx import AsyncClient

from penstock.model.errors import urn_of
from penstock.server.problems import STATUSES
from tests.server.api.operations import METHODS

REF = re.compile(r'"\$ref": "#/components/schemas/([^"]+)"')
BODILESS = ("204",)


def described(server: FastAPI) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation)
        for path, methods in server.openapi()["paths"].items()
        for method, operation in methods.items()
        if method in METHODS
    ]


async def test_the_document_is_served(http: AsyncClient, server: FastAPI) -> None:
    answer = await http.get("/api/openapi.json")
    assert (answer.status_code, answer.json()) == (200, server.openapi())


def test_every_operation_has_a_name_of_its_own_a_description_and_a_tag(server: FastAPI) -> None:
    document = server.openapi()
    tags = {tag["name"] for tag in document["tags"]}
    names = Counter(operation["operationId"] for _, operation in described(server))
    assert [name for name, times in names.items() if times > 1] == []
    for label, operation in described(server):
        assert operation["description"].strip(), label
        assert operation["tags"], label
        assert set(operation["tags"]) <= tags, label


def test_every_operation_is_summed_up_by_its_own_first_sentence(server: FastAPI) -> None:
    for label, operation in described(server):
        assert operation["description"].startswith(operation["summary"]), label
        assert operation["summary"] == operation["summary"].strip(". "), label


def test_every_parameter_says_what_it_is(server: FastAPI) -> None:
    for label, operation in described(server):
        for parameter in operation.get("parameters", ()):
            told = parameter.get("description") or parameter["schema"].get("description")
            assert told, f"{label} {parameter['name']}"


def test_every_text_in_a_query_has_a_bound(server: FastAPI) -> None:
    for label, operation in described(server):
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "query":
                assert not _boundless(parameter["schema"]), f"{label} {parameter['name']}"


def _boundless(schema: dict[str, Any]) -> bool:
    parts = [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]
    bounds = {"maxLength", "pattern", "enum", "format", "const"}
    endless = schema.get("type") == "string" and not bounds & schema.keys()
    return endless or any(_boundless(part) for part in parts)


def test_every_error_of_ours_is_named_where_it_is_answered(server: FastAPI) -> None:
    told = json.dumps([operation["responses"] for _, operation in described(server)])
    for kind in STATUSES:
        assert f"`{urn_of(kind)}`" in told


def test_every_success_has_a_model(server: FastAPI) -> None:
    for label, operation in described(server):
        good = {s: a for s, a in operation["responses"].items() if s.startswith("2")}
        assert good, label
        for status, answer in good.items():
            if status not in BODILESS:
                assert answer["content"], label
                for content in answer["content"].values():
                    assert content["schema"], label


def test_every_body_has_an_example_or_fields_that_have(server: FastAPI) -> None:
    schemas = server.openapi()["components"]["schemas"]
    for label, operation in described(server):
        if "requestBody" in operation:
            (content,) = operation["requestBody"]["content"].values()
            (name, *_) = REF.findall(json.dumps(content["schema"]))
            fields = schemas[name]["properties"].values()
            assert "examples" in schemas[name] or any("examples" in each for each in fields), label


def test_every_refusal_is_a_problem_document(server: FastAPI) -> None:
    for label, operation in described(server):
        if "x-scopes" not in operation:
            continue
        refused = {s: a for s, a in operation["responses"].items() if s.startswith("4")}
        assert {"401", "403", "404", "422", "429"} <= refused.keys(), label
        for answer in refused.values():
            content = answer["content"]["application/problem+json"]
            assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
            assert content["example"]["status"]
        if "requestBody" in operation:
            assert {"413", "415"} <= refused.keys(), label


def test_every_guarded_operation_says_which_scope_it_needs(server: FastAPI) -> None:
    document = server.openapi()
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for label, operation in described(server):
        if "x-scopes" in operation:
            assert operation["security"] == [{"token": []}], label
            for scope in operation["x-scopes"]:
                assert f"`{scope}`" in operation["description"], label


def test_every_model_has_a_name_of_its_own_as_generated_clients_need(server: FastAPI) -> None:
    schemas = server.openapi()["components"]["schemas"]
    titles = Counter(schema["title"] for schema in schemas.values() if "title" in schema)
    assert [title for title, times in titles.items() if times > 1] == []


def test_every_reference_leads_somewhere(server: FastAPI) -> None:
    document = server.openapi()
    wanted = set(REF.findall(json.dumps(document)))
    assert wanted <= document["components"]["schemas"].keys()
    assert {"NewJob", "JobEvent", "Problem"} <= wanted


def test_every_body_has_a_model_whose_unknown_fields_are_refused(server: FastAPI) -> None:
    document = server.openapi()
    for label, operation in described(server):
        if "requestBody" not in operation:
            continue
        (content,) = operation["requestBody"]["content"].values()
        names = REF.findall(json.dumps(content["schema"]))
        assert names, label
        for name in names:
            model = document["components"]["schemas"][name]
            assert model.get("additionalProperties") is False, (label, name)


def test_no_model_is_named_after_its_module(server: FastAPI) -> None:
    schemas = server.openapi()["components"]["schemas"]
    assert [name for name in schemas if "__" in name] == []

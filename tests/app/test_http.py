"""GraphQL over HTTP: statuses, media types and limits; the pages, the headers and the health routes."""

import json
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tenure import web
from tenure.db.errors import StorageUnavailable
from tenure.resolvers import workspaces
from tests.app.conftest import Api, Serve

MODERN = "application/graphql-response+json"


@pytest.mark.parametrize(
    "body",
    ['"x"', "null", "1", "[1,2]", "[]", "{", "", "NaN", "[" * 100_000, b"\xff\xfe{", '{"query": 5}', '{"query": null}', "{}"],
)
async def test_a_malformed_body_is_a_400(api: Api, body: str | bytes) -> None:
    response = await api.send(body)
    assert response.status_code == 400
    assert response.json()["errors"][0]["extensions"]["code"] == "BAD_REQUEST"


@pytest.mark.parametrize(
    "extra",
    [{"variables": [1]}, {"variables": "x"}, {"operationName": 5}, {"operationName": {}}, {"extensions": 1}],
)
async def test_malformed_members_are_a_400(api: Api, extra: dict[str, object]) -> None:
    assert (await api.send(json.dumps({"query": "{__typename}", **extra}))).status_code == 400


async def test_batches_are_off(api: Api) -> None:
    assert (await api.send('[{"query": "{__typename}"}]')).status_code == 400


@pytest.mark.parametrize("media_type", ["text/plain", "application/jsonp", "application/x-www-form-urlencoded", ""])
async def test_another_media_type_is_a_415(api: Api, media_type: str) -> None:
    assert (await api.send('{"query": "{__typename}"}', **{"Content-Type": media_type})).status_code == 415


async def test_a_large_body_is_a_413(api: Api) -> None:
    assert (await api.send(b" " * (4 * 2**20 + 1))).status_code == 413


async def test_other_methods_are_a_405(api: Api) -> None:
    response = await api.client.put("/graphql", json={"query": "{__typename}"})
    assert (response.status_code, response.headers["allow"]) == (405, "GET, POST")


async def test_a_get_runs_queries_alone(api: Api) -> None:
    query = await api.client.get("/graphql", params={"query": "{__typename}", "variables": "null"})
    mutation = await api.client.get("/graphql", params={"query": "mutation { __typename }"})
    assert query.json() == {"data": {"__typename": "Query"}}
    assert mutation.status_code == 405


@pytest.mark.parametrize(
    ("query", "status"), [("{ __typename }", 200), ("{", 400), ("{ nonsense }", 400), ("{ jobKinds { name } }", 200)]
)
async def test_the_modern_media_type_has_modern_statuses(api: Api, query: str, status: int) -> None:
    body = json.dumps({"query": query})
    modern = await api.send(body, "", Accept=MODERN)
    legacy = await api.send(body, "")
    assert (modern.status_code, legacy.status_code) == (status, 200)
    assert modern.headers["content-type"].startswith(MODERN)
    assert legacy.headers["content-type"].startswith("application/json")
    assert modern.json() == legacy.json()
    assert ("data" in modern.json()) == (status == 200)
    assert modern.headers["vary"] == "Accept"


@pytest.mark.parametrize("authorization", ["Bearer wrong", "Bearer", "Basic dTpw", "nonsense"])
async def test_invalid_credentials_are_a_401(api: Api, authorization: str) -> None:
    response = await api.send('{"query": "{__typename}"}', Authorization=authorization)
    assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
    assert response.json()["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("{ " + "a { " * 20 + "b" + " }" * 20 + " }", "TOO_COMPLEX"),
        ("{ a: __typename " + " ".join(f"b{n}: __typename" for n in range(60)) + " }", "TOO_COMPLEX"),
        ("{ __typename " * 3000, "BAD_REQUEST"),
        ("{ __typename" + " __typename" * 6000 + " }", "BAD_REQUEST"),
        ("{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }", "BAD_REQUEST"),
        ("{ ...missing }", "BAD_REQUEST"),
        ("{ job(id: 1.5) { id } }", "BAD_REQUEST"),
        ("query A { __typename } query B { __typename }", "BAD_REQUEST"),
    ],
)
async def test_documents_that_are_refused(api: Api, query: str, code: str) -> None:
    assert (await api.post(query))["errors"][0]["extensions"]["code"] == code


async def test_fragments_that_double_are_measured_in_no_time(api: Api) -> None:
    fragments = " ".join(f"fragment f{n} on Query {{ ...f{n + 1} ...f{n + 1} }}" for n in range(200))
    answer = await api.post(f"{{ ...f0 }} {fragments} fragment f200 on Query {{ a: __typename }}")
    assert answer["errors"][0]["extensions"]["code"] == "TOO_COMPLEX"


async def test_the_chosen_operation_runs(api: Api) -> None:
    body = {"query": "query A { a: __typename } query B { b: __typename }", "operationName": "B"}
    assert (await api.send(json.dumps(body))).json() == {"data": {"b": "Query"}}


async def test_a_subscription_needs_a_stream(api: Api) -> None:
    response = await api.send('{"query": "subscription { jobProgress(id: 1) { id } }"}')
    assert response.json()["errors"][0]["extensions"]["code"] == "BAD_REQUEST"


async def test_what_breaks_is_told_by_a_number_alone(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("SELECT secret")

    monkeypatch.setattr(workspaces, "workspace_by_slug", fail)
    (error,) = (await api.post('{ workspace(slug: "acme") { id } }'))["errors"]
    assert error["extensions"]["code"] == "INTERNAL"
    assert "secret" not in json.dumps(error)
    (record,) = [r for r in caplog.records if r.name == "tenure.schema.outcomes"]
    assert vars(record)["correlation_id"] == error["extensions"]["correlationId"]
    assert "SELECT secret" in caplog.text


async def test_an_outage_is_unavailable(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: object) -> None:
        raise StorageUnavailable("The database cannot be reached.")

    with monkeypatch.context() as patch:
        patch.setattr(workspaces, "workspace_by_slug", away)
        assert await api.error_code('{ workspace(slug: "acme") { id } }') == "UNAVAILABLE"
    monkeypatch.setattr("tenure.auth.principal_of_token", away)
    response = await api.send('{"query": "{__typename}"}')
    assert response.status_code == 503
    assert response.json()["errors"][0]["extensions"]["code"] == "UNAVAILABLE"


async def test_a_browser_gets_a_page_and_others_a_400(api: Api) -> None:
    browser = await api.client.get("/graphql", headers={"Accept": "text/html,*/*;q=0.8"})
    other = await api.client.get("/graphql")
    assert (browser.status_code, browser.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "http" not in browser.text.replace("HTTP", "").lower().split("<body")[-1].replace("graphql-transport-ws", "")
    assert (other.status_code, other.json()["errors"][0]["extensions"]["code"]) == (400, "BAD_REQUEST")


async def test_every_answer_has_the_security_headers(api: Api) -> None:
    for path in ("/", "/graphql", "/livez", "/missing.js"):
        headers = (await api.client.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"


async def test_health(api: Api) -> None:
    live, ready = await api.client.get("/livez"), await api.client.get("/readyz")
    assert (live.status_code, ready.status_code) == (200, 200)
    assert ready.json()["parts"] == {"database": "ok", "schema": "ok", "listener": "ok"}
    await api.seed.execute("UPDATE schema_info SET version = 99, oldest_compatible = 99")
    shut_out = await api.client.get("/readyz")
    assert shut_out.status_code == 503
    assert "99" in shut_out.json()["parts"]["schema"]
    await api.seed.execute("DROP TABLE schema_info")
    assert (await api.client.get("/readyz")).status_code == 503


async def test_readiness_tells_of_an_unreachable_database(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve() as api:

        async def away(*_: object) -> None:
            raise OSError

        monkeypatch.setattr("tenure.health.check_compatible", away)
        response = await api.client.get("/readyz")
        assert response.status_code == 503
        assert response.json()["parts"]["database"] == "cannot be reached"
        assert (await api.client.get("/livez")).status_code == 200


async def page(directory: Path, path: str) -> tuple[int, str, str]:
    app = Starlette(routes=[Mount("/", web.Pages(directory))])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        response = await client.get(path)
    return response.status_code, response.text, response.headers.get("cache-control", "")


async def test_the_ui_is_served_with_its_files(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("the page")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.js").write_text("script")
    assert await page(tmp_path, "/") == (200, "the page", "no-cache")
    assert await page(tmp_path, "/index.html") == (200, "the page", "no-cache")
    assert await page(tmp_path, "/jobs/1") == (200, "the page", "no-cache")
    assert await page(tmp_path, "/assets/a.js") == (200, "script", "public, max-age=31536000, immutable")
    assert (await page(tmp_path, "/assets/b.js"))[0] == 404
    assert (await page(tmp_path, "/%2e%2e/pyproject.toml"))[0] == 404


async def test_a_missing_build_says_what_to_do(tmp_path: Path) -> None:
    status, text, _ = await page(tmp_path, "/")
    assert status == 503
    assert "make install" in text

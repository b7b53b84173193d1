import httpx

from penstock import Penstock


async def test_the_load_is_told_in_figures_an_autoscaler_reads(
    app: Penstock, http: httpx.AsyncClient
) -> None:
    await app.enqueue_payload("add", '{"a": 1}')
    await app.enqueue_payload("send_mail", '{"to": "ann@example.com"}')
    everything = (await http.get("/api/autoscale")).json()
    assert everything == {
        "queued": 2,
        "in_progress": 0,
        "wait_seconds": 0.0,
        "cpu_percent": 0.0,
        "workers": 0,
    }
    assert (await http.get("/api/autoscale?queue=mail")).json()["queued"] == 1
    assert (await http.get("/api/autoscale?queue=mail&queue=default")).json()["queued"] == 2


async def test_the_same_figures_are_gauges_of_prometheus(
    app: Penstock, http: httpx.AsyncClient
) -> None:
    await app.enqueue_payload("add", '{"a": 1}')
    text = (await http.get("/metrics")).text
    assert "\npenstock_autoscale_queued 1.0\n" in text
    assert "\npenstock_autoscale_cpu_percent 0.0\n" in text

"""An application of Penstock's own, beside the tasks."""

from penstock import Penstock

app = Penstock("sqlite:///:memory:")


@app.job
async def ship(order: int) -> None: ...

"""The application whose consumer the benchmark of derived rows runs."""

from penstock.app.penstock import Penstock
from proof.tally import Tally, tally

app = Penstock(extensions=[tally])
app.consumer.add(Tally().consumer(batch=500))

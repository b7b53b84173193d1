"""`app.recorder`: what was recorded, for programs."""

from typing import TYPE_CHECKING

from penstock.apps.recorder.learnings import Learnings
from penstock.apps.recorder.privacy import Privacy
from penstock.apps.recorder.reading import Sessions

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock


class Recorder:
    """Sessions, what was learned from them, and what belongs to people."""

    def __init__(self, app: "Penstock") -> None:
        self.sessions = Sessions(app)
        self.learnings = Learnings(app)
        self.privacy = Privacy(app)

"""The recorder as an application of its own: `penstock up penstock.apps.recorder.app`.

It is on the store in the recorder's home, unless the settings name another; `penstock recorder up`
runs it.
"""

from penstock.app.penstock import Penstock
from penstock.apps.recorder.home import url
from penstock.config import Settings, load_settings


def _settings() -> Settings:
    settings = load_settings()
    if settings.url != Settings().url:
        return settings
    return settings.replace(url=url(makes=True))


app = Penstock(settings=_settings(), extensions=["events", "recorder"])

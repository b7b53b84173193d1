"""The types of jobs about webhooks: one that delivers to an endpoint, one that reads Slack."""

from typing import Any

from msgspec import Struct

from penstock.app.context import Context
from penstock.apps.agents.worker import Worker
from penstock.model.errors import InvalidOption
from penstock.model.options import check_text

LONGEST_TOPIC = 200


class DispatchData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """What is delivered where.

    `headers` go along with those of the webhook, and `signature` replaces our `X-Signature`.
    `message_id` is that of a message which was sent before, and `person` whom it is about.
    """

    webhook_id: str
    payload: Any
    headers: dict[str, str] = {}
    signature: str | None = None
    topic: str = ""
    message_id: str | None = None
    person: str | None = None

    def __post_init__(self) -> None:
        check_text("topic", self.topic)
        if len(self.topic) > LONGEST_TOPIC:
            raise InvalidOption("topic", self.topic[:50], f"at most {LONGEST_TOPIC} characters")
        if self.person is not None:
            check_text("person", self.person)


class Dispatched(Struct, rename="camel", omit_defaults=True, kw_only=True):
    """How a delivery ended; one that is not worth another try says why."""

    success: bool
    status_code: int | None = None
    latency_ms: int | None = None
    reason: str | None = None
    error: str | None = None


class WebhookDispatch(Worker[DispatchData, Dispatched]):
    """Deliver a message to a webhook, signed, and write down how that went.

    Whoever is away, or answers 500 and up, is tried again; 429 is waited for as long as it says.
    A webhook that is disabled (`webhook_disabled`) and an answer that another try would not change
    (`non_retryable_error`) end the job.
    """

    name = "webhook-dispatch"

    async def process(self, data: DispatchData, ctx: Context) -> Dispatched:
        """Send it, unless an earlier execution of this job has done so."""
        from penstock.apps.agents.webhooks.dispatch import dispatch

        async with ctx.app as app:
            return await dispatch(app, data, ctx.job)

    def is_retryable(self, error: BaseException) -> bool | None:
        """Try again whoever gave no answer, or one that another try may change."""
        from penstock.apps.agents.webhooks.dispatch import NotDelivered

        return True if isinstance(error, NotDelivered) else super().is_retryable(error)


class SlackData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Which channel is read, through which connection of the settings.

    Its messages become memories of `user_id`, or of whoever wrote them. `oldest` is where the first
    run begins, in seconds since 1970 as Slack writes them.
    """

    connection: str
    channel: str
    user_id: str | None = None
    oldest: str = "0"
    threads: bool = True
    importance: float = 0.5


class SlackSynced(Struct, rename="camel", kw_only=True):
    """How much was read, and how far it goes now."""

    pages: int
    messages: int
    memories: int
    newest: str


class SlackSync(Worker[SlackData, SlackSynced]):
    """Make memories of what was written in a Slack channel since the last time.

    Pages are read from the newest to the oldest; where it was interrupted, or asked to wait, it
    goes on. The token stands in `[penstock.agents.slack.connections.NAME]`, by its place.
    """

    name = "slack-sync"

    async def process(self, data: SlackData, ctx: Context) -> SlackSynced:
        """Read what is new, page by page."""
        from penstock.apps.agents.webhooks.slack import sync

        return await sync(data, ctx)

    def is_retryable(self, error: BaseException) -> bool | None:
        """Give up what another try does not change: a wrong token, a channel that is not there."""
        from penstock.apps.agents.webhooks.slack import SlackRefused

        return False if isinstance(error, SlackRefused) else super().is_retryable(error)


WORKERS: tuple[type[Worker[Any, Any]], ...] = (WebhookDispatch, SlackSync)

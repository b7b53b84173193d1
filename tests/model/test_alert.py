from hypothesis import given
from hypothesis import strategies as st

from penstock.model.alert import HISTORY, Alert, AlertState, Reading, acknowledged, judged, paid
from penstock.model.alert_rules import MEASURES, RULES, Metric, Rule, Severity, Unit, figure

RULE = Rule(
    name="deep",
    metric=Metric.QUEUE_DEPTH,
    threshold=10,
    duration=60,
    cool_down=300,
    severity=Severity.WARNING,
    action="Add workers.",
    route="ops",
)
QUIET, PENDING, FIRING, RESOLVED = AlertState
FOLLOWS = {
    QUIET: {QUIET, PENDING},
    PENDING: {PENDING, QUIET, RESOLVED, FIRING},
    FIRING: {FIRING, RESOLVED},
    RESOLVED: {RESOLVED, PENDING},
}
readings = st.builds(
    Reading, st.none() | st.floats(0, 20), st.just("mail"), st.sampled_from(["", "a", "b"])
)


@given(st.lists(st.tuples(readings, st.integers(0, 400)), max_size=120))
def test_whatever_is_measured_an_alert_takes_only_steps_that_make_sense(
    measured: list[tuple[Reading, int]],
) -> None:
    alert, now = Alert(name="deep", rule="deep"), 0
    told: list[AlertState] = []
    keys: list[str] = []
    for reading, seconds in measured:
        now += seconds * 1000
        before, alert = alert, judged(alert, RULE, reading, now)
        assert alert.state in FOLLOWS[before.state]
        wrong = reading.value is not None and reading.value > 10
        assert alert.stands == wrong
        if alert.state is FIRING and before.state is not FIRING:
            assert now - (alert.since_at or 0) >= 60_000
        told += [notice.state for notice in alert.owed]
        keys += [notice.key for notice in alert.owed]
        alert = paid(alert)
        assert len(alert.history) <= HISTORY
        assert judged(alert, RULE, reading, now) == alert
    assert len(set(keys)) == len(keys)
    for first, second in zip([RESOLVED, *told], told, strict=False):
        assert second is FIRING or first is FIRING


def test_a_rule_without_a_duration_fires_at_once() -> None:
    alert = judged(Alert(name="x", rule="x"), RULES[2], Reading(4_000), 1_000)
    assert [turn.state for turn in alert.history] == [PENDING, FIRING]
    assert alert.since_at == alert.fired_at == 1_000


def test_that_somebody_knows_does_not_change_since_when_it_fires() -> None:
    alert = judged(Alert(name="deep", rule="deep"), RULES[2], Reading(4_000), 5)
    assert acknowledged(alert, "ada", None, 9_000).turned_at == alert.turned_at == 5


def test_no_figure_is_no_alarm() -> None:
    firing = judged(Alert(name="x", rule="x"), RULES[2], Reading(4_000), 1_000)
    assert judged(firing, RULES[2], Reading(None), 2_000).state is RESOLVED


def test_the_threshold_itself_is_right_except_for_a_full_queue() -> None:
    for rule in RULES:
        assert rule.breached(rule.threshold) == (rule.metric is Metric.BACKPRESSURE), rule.name


def test_every_metric_has_a_meaning_and_every_rule_a_name_of_its_own() -> None:
    assert MEASURES.keys() == set(Metric)
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_figures_are_written_for_people() -> None:
    assert figure(Unit.JOBS, 1_200) == "1,200 jobs"
    assert figure(Unit.WORKERS, 1) == "1 worker"
    assert figure(Unit.SECONDS, 3_780) == "1 h 3 min"
    assert figure(Unit.PERCENT, 92.5) == "92.5 %"

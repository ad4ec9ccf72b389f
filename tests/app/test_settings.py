"""Settings are typed and checked before anything starts."""

import pytest
from pydantic import ValidationError

from tenure.services import admission_limits
from tenure.settings import Settings


@pytest.fixture(autouse=True)
def no_file(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))


def test_defaults() -> None:
    settings = Settings()
    assert (settings.lease_seconds, settings.heartbeat_seconds, settings.max_attempts, settings.worker_concurrency) == (
        60,
        15,
        3,
        2,
    )
    limits = admission_limits(settings)
    assert limits.pending_per_workspace == 1000
    admin = limits.queues["admin"]
    assert (admin.pending_per_workspace, admin.pending_per_actor, admin.created_per_day) == (10, 3, 100)


def test_a_heartbeat_longer_than_a_third_of_the_lease_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_LEASE_SECONDS", "30")
    monkeypatch.setenv("TENURE_HEARTBEAT_SECONDS", "10")
    assert Settings().heartbeat_seconds == 10
    monkeypatch.setenv("TENURE_HEARTBEAT_SECONDS", "10.01")
    with pytest.raises(ValidationError, match="at most a third of TENURE_LEASE_SECONDS"):
        Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEASE_SECONDS", "0"),
        ("MAX_PENDING", "-1"),
        ("MAX_ATTEMPTS", "101"),
        ("WORKER_CONCURRENCY", "x"),
        ("DATABASE_URL", "mysql://x"),
    ],
)
def test_what_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"TENURE_{name}", value)
    with pytest.raises(ValidationError):
        Settings()


def test_lists_are_written_with_commas_or_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_KINDS", "a.b, c.d e")
    assert Settings().kinds == ("a.b", "c.d", "e")


def test_an_empty_url_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_DATABASE_URL", "")
    assert Settings().database_url is None

"""The settings of a process, read once from TENURE_* variables or a .env file. Nothing below the app sees this class."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

Names = Annotated[tuple[str, ...], NoDecode]
"""A list written with commas or spaces."""


class Settings(BaseSettings):
    """Names, defaults and units are listed in docs/operations.md; the limits' meaning is in docs/guarantees.md."""

    model_config = SettingsConfigDict(env_prefix="TENURE_", env_file=".env", frozen=True, extra="ignore")

    database_url: str | None = None
    """A plain postgresql:// URL. Without one the embedded server of `data_dir` serves."""
    listen_url: str | None = None
    """For LISTEN and NOTIFY, where `database_url` goes through a transaction-mode pooler."""
    data_dir: Path = Path(".tenure")
    kinds: Names = ()
    """Modules that register kinds, beside those of the entry point group `tenure.kinds`."""

    lease_seconds: float = Field(60, gt=0, le=86_400)
    heartbeat_seconds: float = Field(15, gt=0)
    poll_seconds: float = Field(2, gt=0, le=3_600)
    max_attempts: int = Field(3, ge=1, le=100)
    worker_concurrency: int = Field(2, ge=1, le=1_000)
    shutdown_grace_seconds: float = Field(20, ge=0, le=3_600)
    backoff_base_seconds: float = Field(2, gt=0)
    backoff_cap_seconds: float = Field(600, gt=0)
    max_course_pages: int = Field(100_000, ge=1)

    max_pending: int = Field(10_000, ge=0)
    max_pending_per_workspace: int = Field(1_000, ge=0)
    admin_max_pending_per_workspace: int = Field(10, ge=0)
    admin_max_pending_per_actor: int = Field(3, ge=0)
    admin_max_created_per_day: int = Field(100, ge=0)

    pool_size: int = Field(10, ge=2, le=100)
    log_level: str = "INFO"

    @field_validator("kinds", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value

    @field_validator("database_url", "listen_url")
    @classmethod
    def _plain_url(cls, value: str | None) -> str | None:
        if not value:  # as an unset variable of a compose file arrives
            return None
        if not value.startswith(("postgresql://", "postgres://")):
            raise ValueError("must be a plain postgresql:// URL")
        return value.replace("postgres://", "postgresql://", 1)

    @model_validator(mode="after")
    def _heartbeat_fits_lease(self) -> Self:
        if self.heartbeat_seconds > self.lease_seconds / 3:
            raise ValueError(
                f"TENURE_HEARTBEAT_SECONDS ({self.heartbeat_seconds:g}) must be at most a third of TENURE_LEASE_SECONDS"
                f" ({self.lease_seconds:g}): two lost heartbeats may not cost a lease"
            )
        return self

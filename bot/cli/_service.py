"""What commands read and change of a service: its settings and its database, beside it while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.errors import UsageError
from bot.settings import Settings, load_settings
from bot.store import Database

_SQLITE = "sqlite:///"


@contextmanager
def opened() -> Iterator[tuple[Settings, Database]]:
    """The service's settings and database. Raises UsageError where there is none yet."""
    settings = load_settings()
    embedded = Path(settings.database_url.removeprefix(_SQLITE).partition("?")[0])
    if settings.database_url.startswith(_SQLITE) and not embedded.exists():
        raise UsageError(
            f"there is no service's database at {embedded}; set ASSAY_DATA_DIR to its data folder, or start "
            "`assay serve` once"
        )
    database = Database(settings.database_url)
    try:
        if not database.is_migrated():
            raise UsageError("the database is of another version of Assay; start `assay serve` once")
        yield settings, database
    finally:
        database.close()

"""Access to a service's settings, database and bugs, also while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bot.errors import UsageError
from bot.settings import Settings, load_settings
from bot.store import Database, Session, bug_details
from bot.store.database import missing_file
from bot.store.models import Bug


@contextmanager
def open_database() -> Iterator[tuple[Settings, Database]]:
    """The service's settings and database; raises UsageError if there is no database."""
    settings = load_settings()
    missing = missing_file(settings.database_url)
    if missing is not None:
        raise UsageError(
            f"no service database at {missing}; set ASSAY_DATA_DIR to its data folder, or start "
            "`assay serve` once; `assay run` writes its findings into its --report, not there"
        )
    database = Database(settings.database_url)
    try:
        if not database.is_migrated():
            raise UsageError("the database was made by another version of Assay; start `assay serve` once")
        yield settings, database
    finally:
        database.close()


def find_bug(session: Session, named: str) -> Bug:
    """The bug with this id, or with a signature that starts with `named`. Raises UsageError."""
    found = bug_details.find_bugs(session, named)
    if not found:
        raise UsageError(f"unknown bug {named}; `assay bugs` lists them")
    if len(found) > 1:
        several = ", ".join(f"{one.id} ({one.signature} of {one.target})" for one in found[:10])
        raise UsageError(f"{named} is ambiguous: {several}; give the number")
    return found[0]

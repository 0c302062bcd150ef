"""The database: models, migrations and queries. The only room that imports SQLAlchemy (law 2)."""

from bot.store.database import Database, now

__all__ = ["Database", "now"]

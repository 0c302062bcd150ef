"""The database: models, migrations and queries. The only room that imports SQLAlchemy (law 2)."""

from sqlalchemy.orm import Session

from bot.store.database import Database, now

__all__ = ["Database", "Session", "now"]

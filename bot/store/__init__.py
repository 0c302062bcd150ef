"""The database: models, migrations and queries. The only package that imports SQLAlchemy."""

from sqlalchemy.orm import Session

from bot.store.database import Database, now

__all__ = ["Database", "Session", "now"]

"""Renames of targets. One row has the name; all others refer to it (`bot.store.models.target_names`)."""

from __future__ import annotations

from itertools import chain, count

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from bot.errors import InternalError
from bot.store.models import AuditEvent, Base, CachedResponse, Target, TargetName, reference_column

#: The audit action of a rename; its evidence has the old name as "before".
RENAMED = "renamed"
_PARKED = ".was-"


def rename_target(session: Session, old: str, new: str) -> None:
    """Renames the target `old` to `new`.

    A target that has the new name gets a temporary one: it was renamed, too, and an event or the next list of
    repositories contains its name. Names that differ in case only are one repository's.
    """
    if old == new:
        raise InternalError(f"{old} is to be renamed to itself")
    if _is_taken(session, new):
        if old.lower() == new.lower():
            _merge(session, new, old)
        else:
            free_name(session, new)
    _rename(session, old, new)


def free_name(session: Session, name: str) -> str:
    """Frees a name that another repository has now; returns the old holder's temporary name."""
    target = session.get(Target, name)
    known = target.github_id if target is not None else None
    parked = _unique_name(session, f"{name}{_PARKED}{known if known is not None else 'unknown'}")
    _rename(session, name, parked)
    return parked


def known_names(session: Session, target: str) -> list[str]:
    """The current and earlier names of a target: files may exist under each of them."""
    renamed = select(AuditEvent).where(AuditEvent.target == target, AuditEvent.action == RENAMED)
    before = (
        str(event.evidence.get("before", "")) for event in session.scalars(renamed.order_by(AuditEvent.id))
    )
    row = session.get(Target, target)
    every = (target, *before, row.stable_name if row is not None else "")
    # A target with a temporary name had the other name before, perhaps without an audit event.
    return list(dict.fromkeys(part for name in every for part in (name, name.partition(_PARKED)[0]) if part))


def _rename(session: Session, old: str, new: str) -> None:
    session.flush()
    session.execute(update(TargetName).where(TargetName.name == old).values(name=new))
    # Responses of the old address are redirects from now on.
    session.execute(
        delete(CachedResponse)
        .where(func.lower(CachedResponse.url).contains(f"/repos/{old.lower()}", autoescape=True))
        .execution_options(synchronize_session=False)
    )
    session.expire_all()


def _merge(session: Session, name: str, into: str) -> None:
    """Lets everything that refers to one name refer to another."""
    session.flush()
    for table in Base.metadata.sorted_tables:
        reference = reference_column(table)
        if reference is not None:
            session.execute(update(table).where(reference == name).values({reference.key: into}))
    session.execute(delete(TargetName).where(TargetName.name == name))


def _is_taken(session: Session, name: str) -> bool:
    return session.scalar(select(TargetName.id).where(TargetName.name == name)) is not None


def _unique_name(session: Session, name: str) -> str:
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(free for free in names if not _is_taken(session, free))

"""The fields of GitHub's responses that Assay uses, as dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from bot.github.responses import expected_shape

Json = Mapping[str, Any]


R = TypeVar("R")


@dataclass(frozen=True)
class PullInfo:
    """A pull request.

    head, base         commits; base_ref is the branch to merge into
    head_repository    owner/name of the head's repository, "" if it was deleted
    fork               whether the head's repository is another one or was deleted
    association        GitHub's author_association, such as FIRST_TIME_CONTRIBUTOR
    state              open, closed or merged
    merge_commit       "" before the merge
    """

    number: int
    title: str
    head: str
    head_ref: str
    base: str
    base_ref: str
    head_repository: str
    fork: bool
    author: str
    bot: bool
    association: str
    draft: bool
    state: str
    merge_commit: str
    updated_at: datetime
    url: str

    @classmethod
    def of(cls, data: Json) -> PullInfo:
        """Parses GitHub's `pull-request` or `pull-request-simple`."""
        head, base = data["head"], data["base"]
        source, own = (side["repo"]["full_name"] if side.get("repo") else "" for side in (head, base))
        merged = bool(data.get("merged_at"))
        return cls(
            number=data["number"],
            title=data["title"],
            head=head["sha"],
            head_ref=head["ref"],
            base=base["sha"],
            base_ref=base["ref"],
            head_repository=source,
            fork=source.lower() != own.lower(),
            author=_login(data),
            bot=_is_bot(data),
            association=data.get("author_association") or "NONE",
            draft=bool(data.get("draft")),
            state="merged" if merged else data["state"],
            merge_commit=(data.get("merge_commit_sha") or "") if merged else "",
            updated_at=parse_time(data["updated_at"]),
            url=data["html_url"],
        )


@dataclass(frozen=True)
class RepositoryInfo:
    """A repository; `permissions` are ours, if GitHub returned them."""

    github_id: int
    full_name: str
    default_branch: str
    private: bool
    archived: bool
    has_issues: bool
    fork: bool
    permissions: Mapping[str, bool]

    @classmethod
    def of(cls, data: Json) -> RepositoryInfo:
        """Parses GitHub's `repository` or `full-repository`."""
        return cls(
            github_id=data["id"],
            full_name=data["full_name"],
            default_branch=data.get("default_branch") or "",
            private=bool(data.get("private")),
            archived=bool(data.get("archived")),
            has_issues=bool(data.get("has_issues", True)),
            fork=bool(data.get("fork")),
            permissions=dict(data.get("permissions") or {}),
        )


@dataclass(frozen=True)
class IssueInfo:
    """An issue, or a pull request as an issue (`pull`); `state_reason` is "" if missing."""

    number: int
    title: str
    body: str
    state: str
    state_reason: str
    author: str
    bot: bool
    labels: tuple[str, ...]
    pull: bool
    locked: bool
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None
    url: str

    @classmethod
    def of(cls, data: Json) -> IssueInfo:
        """Parses GitHub's `issue` or `issue-search-result-item`."""
        closed = data.get("closed_at")
        return cls(
            number=data["number"],
            title=data["title"],
            body=data.get("body") or "",
            state=data["state"],
            state_reason=data.get("state_reason") or "",
            author=_login(data),
            bot=_is_bot(data),
            labels=tuple(_label(one) for one in data.get("labels") or ()),
            pull="pull_request" in data,
            locked=bool(data.get("locked")),
            created_at=parse_time(data["created_at"]),
            updated_at=parse_time(data["updated_at"]),
            closed_at=parse_time(closed) if closed else None,
            url=data["html_url"],
        )


@dataclass(frozen=True)
class CommentInfo:
    """A comment on the issue or pull request `number`."""

    id: int
    number: int
    author: str
    bot: bool
    association: str
    body: str
    created_at: datetime
    updated_at: datetime
    url: str
    on_pull: bool

    @classmethod
    def of(cls, data: Json) -> CommentInfo:
        """Parses GitHub's `issue-comment`."""
        return cls(
            id=data["id"],
            number=int(data["issue_url"].rsplit("/", 1)[1]),
            author=_login(data),
            bot=_is_bot(data),
            association=data.get("author_association") or "NONE",
            body=data.get("body") or "",
            created_at=parse_time(data["created_at"]),
            updated_at=parse_time(data["updated_at"]),
            url=data["html_url"],
            on_pull="/pull/" in data["html_url"],
        )


@dataclass(frozen=True)
class InstallationInfo:
    """An installation of the App; `selection` is "all" or "selected" repositories."""

    id: int
    account: str
    permissions: Mapping[str, str]
    events: tuple[str, ...]
    suspended: bool
    selection: str

    @classmethod
    def of(cls, data: Json) -> InstallationInfo:
        """Parses GitHub's `installation`."""
        return cls(
            id=data["id"],
            account=(data.get("account") or {}).get("login") or "",
            permissions=dict(data.get("permissions") or {}),
            events=tuple(data.get("events") or ()),
            suspended=bool(data.get("suspended_at")),
            selection=data.get("repository_selection") or "",
        )


@dataclass(frozen=True)
class DeliveryInfo:
    """An attempt at delivering a webhook; attempts at one delivery share its `guid`.

    id           for `redeliver`
    status_code  of our server's response; 0 for no response
    """

    id: int
    guid: str
    event: str
    action: str
    delivered_at: datetime
    status_code: int
    status: str
    redelivery: bool
    installation: int | None
    repository: int | None

    @property
    def arrived(self) -> bool:
        """Whether our server accepted it."""
        return 200 <= self.status_code < 300

    @classmethod
    def of(cls, data: Json) -> DeliveryInfo:
        """Parses GitHub's `hook-delivery-item`."""
        return cls(
            id=data["id"],
            guid=data["guid"],
            event=data["event"],
            action=data.get("action") or "",
            delivered_at=parse_time(data["delivered_at"]),
            status_code=data["status_code"],
            status=data["status"],
            redelivery=bool(data["redelivery"]),
            installation=data.get("installation_id"),
            repository=data.get("repository_id"),
        )


@dataclass(frozen=True)
class HookInfo:
    """The App's webhook URL; `insecure` if GitHub does not verify the server's certificate."""

    url: str
    content_type: str
    insecure: bool

    @classmethod
    def of(cls, data: Json) -> HookInfo:
        """Parses GitHub's `webhook-config`."""
        insecure = str(data.get("insecure_ssl", "0"))
        return cls(data.get("url") or "", data.get("content_type") or "form", insecure != "0")


@dataclass(frozen=True)
class AppInfo:
    """The App: the permissions and events it requests."""

    id: int
    slug: str
    name: str
    owner: str
    permissions: Mapping[str, str]
    events: tuple[str, ...]
    url: str
    hook_url: str

    @classmethod
    def of(cls, data: Json, hook: HookInfo | None = None) -> AppInfo:
        """Parses GitHub's `integration` and its webhook."""
        owner = data.get("owner") or {}
        return cls(
            id=data["id"],
            slug=data.get("slug") or "",
            name=data.get("name") or "",
            owner=owner.get("login") or owner.get("slug") or "",
            permissions=dict(data.get("permissions") or {}),
            events=tuple(data.get("events") or ()),
            url=data.get("html_url") or "",
            hook_url=hook.url if hook else "",
        )


def parse_time(text: str) -> datetime:
    """Parses a time in GitHub's format, with its zone."""
    return datetime.fromisoformat(text)


def parse(read: Callable[..., R], *data: Any) -> R:
    """Parses one response with a resource's `of`.

    Raises UnexpectedResponseError if a field is missing or invalid.
    """
    with expected_shape(read.__qualname__.partition("Info")[0].lower()):
        return read(*data)


def parse_each(read: Callable[..., R], items: Iterable[Json]) -> list[R]:
    """`parse` for every item."""
    return [parse(read, item) for item in items]


def _login(data: Json) -> str:
    """The author's login; deleted accounts have none and are shown as "ghost"."""
    return (data.get("user") or {}).get("login") or "ghost"


def _is_bot(data: Json) -> bool:
    return (data.get("user") or {}).get("type") == "Bot"


def _label(one: str | Json) -> str:
    return one if isinstance(one, str) else str(one.get("name") or "")

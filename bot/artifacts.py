"""Where the files of campaigns are kept: in the data folder, or in an object store by the URL of fsspec.

    {data}/artifacts/ID/report.html …      by default
    s3://bucket/prefix/ID/report.html …    with ASSAY_ARTIFACTS_URL; written in the data folder first

A report's page is uploaded last, so a page is shown only when its campaign's other files are there. An upload
that fails is repeated with its campaign step and overwrites the same objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from bot.github.mirrors import delete
from bot.object_store import ObjectStore

PAGE = "report.html"


class Artifacts:
    """The files of all campaigns.

    url  of the object store, "" for the data folder

    Methods raise InfrastructureError if the store does not work.
    """

    def __init__(self, url: str, data_dir: Path) -> None:
        self._store = ObjectStore(url)
        self._url = self._store.url
        self._root = data_dir / "artifacts"

    def folder(self, campaign: int) -> Path:
        """The local folder in which the files of a campaign are written, before `publish`."""
        return self._root / str(campaign)

    def publish(self, campaign: int) -> None:
        """Uploads the files of a campaign and deletes them here; may be repeated after a crash."""
        folder = self.folder(campaign)
        if not self._url or not folder.is_dir():
            return
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        files.sort(key=lambda path: path.name == PAGE)  # last
        with self._store.connected("upload to") as filesystem:
            for path in files:
                there = f"{self._url}/{campaign}/{path.relative_to(folder).as_posix()}"
                filesystem.pipe_file(there, path.read_bytes())
        delete([folder])

    def page(self, campaign: int) -> bytes | None:
        """The report's page; None if there is none."""
        found: bytes | None = None
        if not self._url:
            with suppress(FileNotFoundError):
                found = (self.folder(campaign) / PAGE).read_bytes()
        else:
            with self._store.connected("read") as filesystem, suppress(FileNotFoundError):
                found = filesystem.cat_file(f"{self._url}/{campaign}/{PAGE}")
        return found

    def with_page(self, campaigns: Iterable[int]) -> set[int]:
        """Those of the campaigns that have a page."""
        if not self._url:
            return {campaign for campaign in campaigns if (self.folder(campaign) / PAGE).is_file()}
        with self._store.connected("read") as filesystem:
            return {one for one in campaigns if filesystem.exists(f"{self._url}/{one}/{PAGE}")}

    def campaigns(self) -> set[int]:
        """The campaigns that have files."""
        names = [path.name for path in self._root.iterdir()] if self._root.is_dir() else []
        if self._url:
            # A folder that is missing: nothing was uploaded yet.
            with self._store.connected("list") as filesystem, suppress(FileNotFoundError):
                names += [path.rpartition("/")[2] for path in filesystem.ls(self._url, detail=False)]
        return {int(name) for name in names if name.isdecimal()}

    def delete(self, campaigns: Iterable[int]) -> None:
        """Deletes the files of campaigns; may be repeated after a crash."""
        ids = list(campaigns)
        delete(self.folder(campaign) for campaign in ids)
        if not self._url:
            return
        with self._store.connected("delete in") as filesystem:
            for campaign in ids:
                with suppress(FileNotFoundError):
                    filesystem.rm(f"{self._url}/{campaign}", recursive=True)

"""Reports in an object store: moto's S3 server on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.artifacts import PAGE, Artifacts
from bot.errors import InfrastructureError
from tests.support.object_store import Store, serving


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with serving(monkeypatch) as made:
        yield made


@pytest.fixture(params=["local", "s3"])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> Artifacts:
    if request.param == "local":
        return Artifacts("", tmp_path)
    request.getfixturevalue("store")
    return Artifacts("s3://reports/assay", tmp_path)


def write(artifacts: Artifacts, campaign: int, text: str = "page") -> None:
    folder = artifacts.folder(campaign)
    (folder / "reproducers").mkdir(parents=True, exist_ok=True)
    (folder / PAGE).write_text(text)
    (folder / "reproducers" / "one.py").write_text("print()")
    (folder / "report.json").write_text("{}")


def test_what_is_published_is_read_listed_and_deleted(artifacts: Artifacts, tmp_path: Path) -> None:
    assert (artifacts.campaigns(), artifacts.page(1)) == (set(), None)
    for campaign in (1, 2, 12):
        write(artifacts, campaign, f"page {campaign}")
        artifacts.publish(campaign)
        artifacts.publish(campaign)
    there = Artifacts(artifacts._url, tmp_path)  # another process
    assert there.campaigns() == {1, 2, 12}
    assert there.page(2) == b"page 2"
    assert there.with_page([1, 3, 12]) == {1, 12}
    artifacts.delete([1, 7])
    assert (there.campaigns(), there.page(1)) == ({2, 12}, None)


def test_files_are_named_by_campaign_and_leave_the_data_folder(store: Store, tmp_path: Path) -> None:
    artifacts = Artifacts("s3://reports/assay/", tmp_path)
    write(artifacts, 3)
    artifacts.publish(3)
    assert store.keys() == ["assay/3/report.html", "assay/3/report.json", "assay/3/reproducers/one.py"]
    assert not artifacts.folder(3).exists()


def test_the_page_is_uploaded_last(store: Store, tmp_path: Path) -> None:
    """The server dies before it: no page is shown, nothing is lost, and the repetition ends the upload."""
    artifacts = Artifacts("s3://reports", tmp_path)
    write(artifacts, 1)
    uploads: list[str] = []
    filesystem = artifacts._store._open()
    send: Callable[..., object] = filesystem.pipe_file

    class Dying:
        def pipe_file(self, path: str, data: bytes) -> None:
            if len(uploads) == 2:
                store.stop()
            send(path, data)
            uploads.append(path)

    artifacts._store._filesystem = Dying()
    with pytest.raises(InfrastructureError, match="cannot upload to s3://reports") as failure:
        artifacts.publish(1)
    assert failure.value.transient
    assert (artifacts.folder(1) / PAGE).is_file()
    store.start()
    artifacts._store._filesystem = None
    artifacts.publish(1)
    assert artifacts.page(1) == b"page"
    assert len(store.keys()) == 3


def test_a_store_that_does_not_answer_is_an_infrastructure_failure(store: Store, tmp_path: Path) -> None:
    artifacts = Artifacts("s3://reports", tmp_path)
    store.stop()
    for use in (lambda: artifacts.page(1), artifacts.campaigns, lambda: artifacts.delete([1])):
        with pytest.raises(InfrastructureError, match="check ASSAY_ARTIFACTS_URL"):
            use()
    store.start()

"""An object store by the URL of fsspec: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, file:///FOLDER."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bot.errors import InfrastructureError, SettingsError

#: Seconds until a store that does not answer counts as failed; botocore's default is 60.
_TIMEOUT_S = 10


class ObjectStore:
    """The store at `url`, connected when it is first used.

    setting  where the URL is from, for messages
    """

    def __init__(self, url: str, setting: str = "ASSAY_ARTIFACTS_URL") -> None:
        self.url = url.rstrip("/")
        self._setting = setting
        self._filesystem: Any = None
        self._errors: tuple[type[Exception], ...] = (OSError,)

    @contextmanager
    def connected(self, what: str) -> Iterator[Any]:
        """The store's file system; failures become InfrastructureError "cannot `what` URL: …".

        Raises SettingsError if a package for this kind of URL is missing.
        """
        try:
            if self._filesystem is None:
                self._filesystem = self._open()
            yield self._filesystem
        except self._errors as error:
            raise InfrastructureError(
                f"cannot {what} {self.url}: {error}; check {self._setting}, its credentials and the network"
            ) from error

    def _open(self) -> Any:
        # Other processes write there, too, so nothing is remembered.
        options: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
        try:
            if self.url.startswith("s3:"):
                botocore: Any = importlib.import_module("botocore.exceptions")
                self._errors = (OSError, botocore.BotoCoreError)
                timeouts = {"connect_timeout": _TIMEOUT_S, "read_timeout": _TIMEOUT_S}
                options |= {"config_kwargs": timeouts | {"retries": {"max_attempts": 2}}}
            fsspec: Any = importlib.import_module("fsspec")
            filesystem, _ = fsspec.core.url_to_fs(self.url, **options)
        except ImportError as error:
            raise SettingsError(
                f"{self._setting} needs a package that is not installed: {error}; "
                "install 'assay[s3]' for s3://, gcsfs for gs://"
            ) from error
        return filesystem

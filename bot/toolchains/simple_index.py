"""Reads which wheels of a package a simple index has: PEP 503 (HTML), PEP 691 (JSON), PEP 700 (dates)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from html.parser import HTMLParser
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import requests
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from bot.errors import ConfigError, ProvisionError
from bot.toolchains.installer import IndexUnreachableError

#: PEP 691, "Version + Format Selection".
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
_TIMEOUT_S = 60.0
_MAX_BYTES = 64 << 20  # PyPI's page of a package with 20,000 files is 12 MB
_CHUNK = 1 << 20


@dataclass(frozen=True)
class IndexedWheel:
    """A wheel that this interpreter can install.

    at  when it was uploaded, in seconds since the epoch; None where the index has no time
    """

    name: str
    version: Version
    at: float | None = None


def list_wheels(index: str, package: str, python: str) -> list[IndexedWheel]:
    """The wheels of a package that are not yanked and that fit this platform and the version `python`.

    Raises IndexUnreachableError if the index does not answer, ConfigError if it does not have the package.
    """
    address = f"{index}/{canonicalize_name(package)}/"
    kind, content = _read(address, package)
    if "json" in kind:
        files = _json_files(content, address)
    else:
        parser = _Links()
        parser.feed(content.decode(errors="replace"))
        files = iter(parser.files)
    tags = set(sys_tags())
    wheels = (_wheel(one, canonicalize_name(package), tags, python) for one in files)
    return [one for one in wheels if one is not None]


def _read(address: str, package: str) -> tuple[str, bytes]:
    """The type and the content of a page."""
    try:
        with requests.get(address, headers={"Accept": _ACCEPT}, timeout=_TIMEOUT_S, stream=True) as response:
            if response.status_code == requests.codes.not_found:
                raise ConfigError(f"{address} has no {package}", key="toolchain.index")
            response.raise_for_status()
            content = bytearray()
            for chunk in response.iter_content(_CHUNK):
                content += chunk
                if len(content) > _MAX_BYTES:
                    raise ProvisionError(f"the page {address} is larger than {_MAX_BYTES >> 20} MB")
            return response.headers.get("Content-Type", ""), bytes(content)
    except requests.RequestException as error:
        raise IndexUnreachableError(f"{address} cannot be read: {type(error).__name__}") from None


@dataclass(frozen=True)
class _File:
    name: str
    requires_python: str = ""
    yanked: bool = False
    at: float | None = None


def _json_files(content: bytes, address: str) -> Iterator[_File]:
    try:
        listed: list[dict[str, Any]] = json.loads(content)["files"]
        for one in listed:
            uploaded = one.get("upload-time")
            at = datetime.fromisoformat(uploaded).timestamp() if uploaded else None
            yield _File(
                str(one["filename"]),
                str(one.get("requires-python") or ""),
                one.get("yanked", False) is not False,
                at,
            )
    except (ValueError, KeyError, TypeError) as error:
        raise ProvisionError(f"{address} is no page of a simple index: {error}") from None


class _Links(HTMLParser):
    """The files of a page in HTML: its links."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[_File] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Takes a link."""
        found = dict(attrs)
        if tag == "a" and found.get("href"):
            name = unquote(PurePosixPath(urlsplit(str(found["href"])).path).name)
            requires = str(found.get("data-requires-python") or "")
            self.files.append(_File(name, requires, "data-yanked" in found))


def _wheel(file: _File, package: str, tags: set[Any], python: str) -> IndexedWheel | None:
    try:
        name, version, _, file_tags = parse_wheel_filename(file.name)
        fits = SpecifierSet(file.requires_python).contains(python, prereleases=True)
    except (InvalidWheelFilename, InvalidSpecifier):
        return None
    if name != package or file.yanked or not fits or not file_tags & tags:
        return None
    return IndexedWheel(file.name, version, file.at)

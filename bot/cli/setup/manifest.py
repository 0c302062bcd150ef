"""Register the GitHub App: print its manifest, or fetch its key and webhook secret."""

from __future__ import annotations

import html
import json
import os
import shlex
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

import click

from bot.cli.exits import Exit
from bot.errors import UsageError
from bot.github.permissions import manifest
from bot.settings import load_settings, web_url
from bot.terminal import echo

_PAGE = """<!doctype html>
<meta charset="utf-8">
<title>Register the GitHub App</title>
<p>This sends the App's manifest to {where}, which shows it to you before anything is made.</p>
<form action="{action}" method="post">
  <input type="hidden" name="manifest" value="{manifest}">
  <button>Register the GitHub App</button>
</form>
"""


@click.command()
@click.option(
    "--url", metavar="URL", help="Public address of this service, such as https://assay.example.org"
)
@click.option("--name", default="Assay", show_default=True, help="The App's name, unique on GitHub.")
@click.option("--organization", metavar="LOGIN", help="Owner of the App. [default: your account]")
@click.option("--no-webhook", is_flag=True, help="Poll instead of receiving webhooks.")
@click.option(
    "--page", type=click.Path(path_type=Path), help="File for a page with a button that registers the App."
)
@click.option(
    "--code", metavar="CODE", help="Code in the address that GitHub redirected to; fetches key and secret."
)
@click.option(
    "--key-file", type=click.Path(path_type=Path), default=Path("assay.private-key.pem"), show_default=True,
    help="Where the private key is written.",
)  # fmt: skip
def command(
    url: str | None,
    name: str,
    organization: str | None,
    no_webhook: bool,
    page: Path | None,
    code: str | None,
    key_file: Path,
) -> Exit:
    """Register the GitHub App.

    First run with `--url URL --page register.html` and open that page. Then run with `--code CODE`, the code
    in the address that GitHub redirects to.
    """
    settings = load_settings()
    if code:
        return _fetch(settings.github_api_url, code, key_file)
    if not url:
        raise UsageError(
            "give the public address of this service with --url https://…, or --code CODE after registering"
        )
    if not url.startswith(("https://", "http://")):
        raise UsageError(f"--url {url}: not an address; write it in full, such as https://assay.example.org")
    output = json.dumps(manifest(url, name, webhook=not no_webhook), indent=2)
    if page is None:
        echo(output)
        return Exit.OK
    owner = f"/organizations/{quote(organization)}" if organization else ""
    where = web_url(settings.github_api_url)
    action = f"{where}{owner}/settings/apps/new"
    filled = _PAGE.format(where=where, action=action, manifest=html.escape(output))
    try:
        page.write_text(filled, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--page {page}: cannot be written: {error.strerror}") from error
    echo(f"{page} written: open it in a browser and press the button")
    return Exit.OK


def _fetch(api_url: str, code: str, key_file: Path) -> Exit:
    """Exchanges the code, valid once within an hour, and prints the settings."""
    from bot.github.app_registration import register

    # The file is opened first: the code works once, and a key that cannot be written would be lost.
    with _new(key_file) as file:
        try:
            made = register(api_url, code)
        except BaseException:
            key_file.unlink()
            raise
        file.write(made.private_key)
    output = {
        "ASSAY_GITHUB_APP_ID": str(made.id),
        "ASSAY_GITHUB_PRIVATE_KEY_FILE": str(key_file.absolute()),
        "ASSAY_WEBHOOK_SECRET": made.webhook_secret,
    }
    for name, value in output.items():
        echo(f"export {name}={shlex.quote(value)}")
    echo(f"install it: {made.url}/installations/new", err=True)
    return Exit.OK


def _new(key_file: Path) -> TextIO:
    """Creates the file with mode 0600; raises UsageError if it exists or cannot be written."""
    try:
        return os.fdopen(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w")
    except FileExistsError:
        raise UsageError(f"{key_file} exists; name another with --key-file") from None
    except OSError as error:
        raise UsageError(
            f"{key_file} cannot be written: {error.strerror}; nothing was fetched, the code is still valid: "
            "make its folder, or name another with --key-file"
        ) from error

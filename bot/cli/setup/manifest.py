"""Make the GitHub App: print its manifest, or fetch the key and the secret that GitHub made for it."""

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
    "--url", metavar="URL", help="Where GitHub reaches this service, such as https://assay.example.org"
)
@click.option(
    "--name", default="Assay", show_default=True, help="The App's name; each is given once on GitHub."
)
@click.option(
    "--organization", metavar="LOGIN", help="Who shall own the App. [default: whoever is signed in]"
)
@click.option("--no-webhook", is_flag=True, help="GitHub cannot reach the service: it polls instead.")
@click.option(
    "--page", type=click.Path(path_type=Path), help="Write a page with a button that registers the App."
)
@click.option("--code", metavar="CODE", help="The code in the address GitHub led to: fetch key and secret.")
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
    """Make the GitHub App.

    First `--url URL --page register.html`, and open that page; then `--code CODE` with the code from the
    address where GitHub leads to.
    """
    settings = load_settings()
    if code:
        return _fetch(settings.github_api_url, code, key_file)
    if not url:
        raise UsageError(
            "say where GitHub reaches this service: --url https://…; or --code CODE, if that is done"
        )
    if not url.startswith(("https://", "http://")):
        raise UsageError(f"--url {url}: is no address; write it in full, such as https://assay.example.org")
    output = json.dumps(manifest(url, name, webhook=not no_webhook), indent=2)
    if page is None:
        click.echo(output)
        return Exit.OK
    owner = f"/organizations/{quote(organization)}" if organization else ""
    where = web_url(settings.github_api_url)
    action = f"{where}{owner}/settings/apps/new"
    filled = _PAGE.format(where=where, action=action, manifest=html.escape(output))
    try:
        page.write_text(filled, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--page {page}: cannot be written: {error.strerror}") from error
    click.echo(f"{page} written: open it in a browser and press the button")
    return Exit.OK


def _fetch(api_url: str, code: str, key_file: Path) -> Exit:
    """Exchanges the code, which is good for an hour and once, and says what to set."""
    from bot.github.app_registration import register

    # The file comes first: the code is good only once, and a key that cannot be kept would be lost.
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
        click.echo(f"export {name}={shlex.quote(value)}")
    click.echo(f"install it: {made.url}/installations/new", err=True)
    return Exit.OK


def _new(key_file: Path) -> TextIO:
    """The file, empty, readable by its owner alone. Raises UsageError where it is there or cannot be made."""
    try:
        return os.fdopen(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w")
    except FileExistsError:
        raise UsageError(f"{key_file} exists; name another with --key-file") from None
    except OSError as error:
        raise UsageError(
            f"{key_file} cannot be written: {error.strerror}; nothing was fetched, the code is still good: "
            "make its folder, or name another with --key-file"
        ) from error

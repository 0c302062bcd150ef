"""The `assay` command: each file below this folder that binds `command` is a subcommand of that name.

`--help` parses the files without importing them: the first line of a file's docstring is its help.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import click

from bot.cli import exits
from bot.errors import InternalError

FOLDER = Path(__file__).parent
#: The subfolder that holds what commands share; it is not searched for commands.
SHARED = "common"


class LazyGroup(click.Group):
    """A group whose commands lie in the files of a package, imported when one is run."""

    def __init__(self, *args: object, package: str, folder: Path, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._package, self._folder = package, folder

    @cached_property
    def _found(self) -> dict[str, tuple[str, str]]:
        return find_commands(self._folder)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands' names, sorted."""
        del ctx
        return sorted(self._found)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the command, or returns None where there is none of that name."""
        del ctx
        # One file is parsed, not all: that is a fifth of the start of `assay run`.
        found = find_commands(self._folder, cmd_name)
        if cmd_name not in found:
            return None
        module = importlib.import_module(f"{self._package}.{found[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command, or suggests the closest name."""
        known = self.get_command(ctx, args[0]) is not None
        close_matches = [] if known else difflib.get_close_matches(args[0], self._found, n=1)
        if close_matches:
            ctx.fail(f"no command {args[0]!r}; did you mean {close_matches[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(sorted((name, line) for name, (_, line) in self._found.items()))


def find_commands(folder: Path, only: str = "") -> dict[str, tuple[str, str]]:
    """Command name → (module relative to the package, help line) for each file that binds `command`.

    Skips `common/`, which holds helpers; with `only`, files of any other command.
    Raises InternalError if two files define the same command.
    """
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(folder.rglob("[!_]*.py")):
        relative, name = path.relative_to(folder), path.stem.replace("_", "-")
        if relative.parts[0] == SHARED or only not in ("", name):
            continue
        module = ast.parse(path.read_bytes(), filename=str(path))
        if not any(_binds_command(node) for node in module.body):
            continue
        dotted = ".".join(relative.with_suffix("").parts)
        if name in found:
            raise InternalError(f"two files define the command {name!r}: {found[name][0]} and {dotted}")
        found[name] = (dotted, (ast.get_docstring(module) or "").partition("\n")[0])
    return found


def _binds_command(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name == "command"
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == "command" for target in node.targets)
    return False


@click.command(
    cls=LazyGroup,
    package=__name__,
    folder=FOLDER,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 success, 1 failure found, 2 wrong usage or settings, "
    "3 infrastructure failure, which is no evidence about a compiler.",
)
@click.option("--json", is_flag=True, expose_value=False, help="Print errors as a JSON object, too.")
@click.version_option(package_name="assay", prog_name="assay")
def cli() -> None:
    """Tests deep-learning compilers at each commit and reports what the change broke."""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Runs `assay` and exits with its exit code."""
    exits.run_and_exit(cli, sys.argv[1:] if argv is None else list(argv))

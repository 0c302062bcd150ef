"""The `source` provisioner: builds a commit by the commands of its repository's configuration.

All code of the commit runs in the sandbox, without a network. The one step that has a network installs the
pinned packages of `toolchain.build.requirements`, from wheels, and runs nothing. A build goes on from the
tree of an ancestor, with ccache where it is installed (`bot.toolchains.build_trees`).
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from bot import processes
from bot.atomic_folders import make_once
from bot.commit_files import CommitFiles, ReadFile
from bot.config import RepositoryConfig
from bot.errors import BuildFailedError, ConfigError, ProvisionError
from bot.toolchains.build_trees import BUILDS, BuildTree, built_wheel
from bot.toolchains.commit_toolchain import make_checked, ready
from bot.toolchains.installer import Installer
from bot.toolchains.registry import OnProgress, ReadyToolchain, ToolchainSpec, provisioner
from bot.toolchains.source_digests import source_of
from bot.toolchains.wheel_files import choose_wheel, install_wheel
from bot.toolchains.wheel_pins import needed_beside
from fuzzing import backends
from fuzzing.execute.sandbox import launcher
from fuzzing.execute.sandbox.launch import interpreter_folders, sandboxed_command
from fuzzing.exhausted_resources import exhausted_resource

_LINES = 50  # of a failed build that are shown
_FILE_BYTES = 16 << 30  # the largest file of a build, such as a library with debug information
_CCACHE_SIZE = "5G"
_SHELL = "/bin/sh"
_KEY = "toolchain.build"


@provisioner("source", configurable=True)
class SourceProvisioner:
    """Builds a wheel of the commit and installs it."""

    def resolve(
        self, config: RepositoryConfig, read: ReadFile, _data_dir: Path | None = None
    ) -> ToolchainSpec:
        """The build of the commit's files; commits with the same ones are one toolchain."""
        build = config.toolchain.build
        if not build.commands:
            raise ConfigError("no commands build this repository", key=f"{_KEY}.commands")
        if not isinstance(read, CommitFiles):
            raise ConfigError("a build needs a git repository", key="toolchain.provisioner")
        repository = source_of(read)
        trees = {path: repository.tree(read.target, read.sha, path) for path in build.sources or [""]}
        if not any(trees.values()):
            raise ConfigError(f"{read.sha[:12]} has none of {', '.join(trees)}", key=f"{_KEY}.sources")
        package = config.toolchain.package or backends.get(config.backend).package
        return ToolchainSpec(
            provisioner="source",
            backend=config.backend,
            requirements=(*needed_beside(config, package), *config.toolchain.extra),
            label=f"{package} built from {read.sha[:12]}",
            origin=(("package", package), ("build", build.model_dump_json()), *trees.items()),
            commit=read,
            config=config.toolchain,
        )

    def provision(self, spec: ToolchainSpec, data_dir: Path, progress: OnProgress) -> ReadyToolchain:
        """The environment with the built wheel.

        Raises BuildFailedError with the last lines of a failed build, BrokenSourcesError if the compiler that
        it made cannot be used.
        """
        commit = spec.commit
        assert commit is not None
        package = dict(spec.origin)["package"]
        root = (data_dir / "toolchains" / BUILDS).absolute()

        def fill(partial: Path) -> dict[str, Any]:
            def build(tree: BuildTree) -> Path:
                return _build(spec, root, tree, package, progress)

            with built_wheel(root / _family(spec), commit, build) as wheel:
                return install_wheel(partial, wheel, spec.requirements)

        return ready(spec, make_checked(spec, data_dir, progress, fill), *_direct(commit, package))


def _direct(commit: CommitFiles, package: str) -> tuple[str, ...]:
    """What a stranger pip-installs for nearly the same build."""
    where = f"git+https://github.com/{commit.target}@{commit.sha}"
    return (f"{package} @ {where}",) if commit.target else ()


def _family(spec: ToolchainSpec) -> str:
    """Names the builds by the same commands of one repository."""
    known = dict(spec.origin)
    target = spec.commit.target if spec.commit else ""
    named = "\0".join((target.lower(), known["package"], known["build"]))
    return hashlib.sha256(named.encode()).hexdigest()[:16]


def _build(spec: ToolchainSpec, root: Path, tree: BuildTree, package: str, progress: OnProgress) -> Path:
    assert spec.config is not None
    build = spec.config.build
    tools = _tools(root, tuple(build.requirements), progress)
    after = f", going on from {tree.ancestor[:12]}" if tree.ancestor else ""
    progress(f"{spec.label}: building{after}")
    for stale in tree.files.glob(build.wheel):
        stale.unlink()  # of the ancestor
    end = time.monotonic() + build.time
    for command in build.commands:
        _run(spec, command, tree, tools, end - time.monotonic())
    return choose_wheel([path for path in tree.files.glob(build.wheel) if not path.is_symlink()], package)


def _tools(root: Path, requirements: tuple[str, ...], progress: OnProgress) -> Path:
    """The environment of the packages that commands need."""
    name = hashlib.sha256("\n".join(sorted(requirements)).encode()).hexdigest()[:16]
    folder = root / f"tools-{name}"
    root.mkdir(parents=True, exist_ok=True)

    def make(partial: Path) -> None:
        progress(f"installing {' '.join(requirements) or 'no packages'} for the build")
        installer = Installer(partial.parent)
        python = installer.make_venv(partial)
        if requirements:
            installer.install(python, requirements)

    make_once(folder, lambda made: (made / "bin" / "python").exists(), make)
    return folder


def _run(spec: ToolchainSpec, command: str, tree: BuildTree, tools: Path, seconds: float) -> None:
    """Runs one command in the sandbox; raises BuildFailedError with its last lines, or ProvisionError if the
    machine lacks a resource.
    """
    assert spec.config is not None
    build = spec.config.build
    line = f"exec 2>&1; cd {shlex.quote(str(tree.files))} && {command}"
    confined = sandboxed_command(
        [_SHELL, "-c", line],
        writable=[tree.folder],
        readable=[tools, *interpreter_folders(tools / "bin" / "python")],
        memory_bytes=build.memory,
        file_bytes=_FILE_BYTES,
    )
    environment = _environment(tree, tools)
    try:
        done = processes.run(
            confined, env=environment, cwd=Path("/"), timeout=max(seconds, 1.0), kill_with_parent=True
        )
    except subprocess.TimeoutExpired:
        raise BuildFailedError(
            f"{spec.label}: the build takes longer than {build.time:g} s, in: {command}"
        ) from None
    if done.returncode == launcher.NOT_CONFINED:
        raise ProvisionError(f"{spec.label} cannot be built: {processes.tail(done.stderr, lines=1)}")
    if done.returncode < 0:  # by the kernel for want of memory, or by an operator: no word about the commit
        raise ProvisionError(f"{spec.label}: {command}: ended by signal {-done.returncode}")
    if done.returncode:
        lines = processes.tail(done.stdout + done.stderr, _LINES, 16_000).replace(str(tree.files), ".")
        # What the machine lacks says nothing of the commit; a build that failed for good is not repeated.
        kind = ProvisionError if exhausted_resource(lines) else BuildFailedError
        raise kind(f"{spec.label}: the build fails in: {command} (exit status {done.returncode})\n{lines}")


def _environment(tree: BuildTree, tools: Path) -> dict[str, str]:
    path = f"{tools}/bin:/usr/local/bin:/usr/bin:/bin"
    own = {
        "PATH": path,
        "HOME": str(tree.home),
        "TMPDIR": str(tree.home / "tmp"),
        "VIRTUAL_ENV": str(tools),
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "CMAKE_BUILD_PARALLEL_LEVEL": str(len(os.sched_getaffinity(0))),
        "MAX_JOBS": str(len(os.sched_getaffinity(0))),
    }
    if shutil.which("ccache", path=path):
        own |= {
            "CCACHE_DIR": str(tree.compiler_cache),
            "CCACHE_MAXSIZE": _CCACHE_SIZE,
            "CMAKE_C_COMPILER_LAUNCHER": "ccache",
            "CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
            "CC": "ccache cc",
            "CXX": "ccache c++",
        }
    return processes.filtered_environment("LANG", "LC_*", extra=own)

"""The `existing` provisioner: an interpreter of this machine, as it is.

For `assay run` and `assay replay`. A repository cannot ask for it, as it would name any program here.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from packaging.utils import canonicalize_name

from bot.config import RepositoryConfig
from bot.errors import ProvisionError, UsageError
from bot.toolchains.probe import probe
from bot.toolchains.registry import OnProgress, ReadFile, ReadyToolchain, ToolchainSpec, provisioner
from fuzzing import backends


def existing_spec(backend_name: str, python: str = sys.executable) -> ToolchainSpec:
    """The toolchain of an interpreter of this machine."""
    # Absolute, for it is started elsewhere; links are kept, for a venv's interpreter is one.
    path = str(Path(python).absolute())
    return ToolchainSpec("existing", backend_name, (), f"{backend_name} of {path}", python=path)


def public_version(version: str) -> str:
    """A version without its local part: 2.13.0 for 2.13.0+cpu."""
    return version.partition("+")[0]


@provisioner("existing", configurable=False)
class ExistingProvisioner:
    """Uses an interpreter as it is; the digest changes with every file of its packages.

    Verdicts are cached by digest, so an upgraded or edited package needs another.
    """

    def resolve(
        self, _config: RepositoryConfig, _read: ReadFile, _data_dir: Path | None = None
    ) -> ToolchainSpec:
        """Raises UsageError: no configuration can name an interpreter."""
        raise UsageError("a repository cannot choose an interpreter of this machine; use 'release'")

    def provision(self, spec: ToolchainSpec, _data_dir: Path, progress: OnProgress) -> ReadyToolchain:
        """Probes the interpreter; raises ProvisionError if the compiler is not in it."""
        adapter = backends.get(spec.backend)
        if not os.access(spec.python, os.X_OK):
            raise ProvisionError(f"{spec.python} is no interpreter; give the path of a python executable")
        progress(f"{adapter.name}: importing it once with {spec.python}")
        modules = [adapter.import_name, *(name.replace("-", "_") for name in adapter.packages)]
        try:
            python, environment = Path(spec.python), adapter.environment
            found = probe(python, adapter.import_name, environment=environment, extra_modules=modules)
        except ProvisionError as error:
            error.add_note(f"`assay doctor --python {spec.python}` says what to install for {adapter.name}")
            raise
        wanted = dict.fromkeys(map(canonicalize_name, (adapter.package, *adapter.packages)))
        packages = [name for name in wanted if name in found.packages]
        digest = hashlib.sha256(
            json.dumps([spec.digest, found.python, found.packages, found.content]).encode()
        ).hexdigest()
        versions = {"python": found.python} | {name: found.packages[name] for name in packages}
        requirements = tuple(f"{name}=={public_version(found.packages[name])}" for name in packages)
        release = found.packages.get(canonicalize_name(adapter.package), "")
        # Reports are shared: they name the release, no path of this machine.
        labeled_spec = replace(spec, label=f"{adapter.name} {release}".rstrip())
        return ReadyToolchain(labeled_spec, digest, spec.python, versions, requirements)

"""The `release` provisioner: a venv with the release that the repository pins.

Runs nothing of the repository: its pin is read as text, and only that exact release, the backend's
requirements and the exact pins of `toolchain.extra` are installed, from wheels.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from bot.config import RepositoryConfig, names
from bot.config.defaults import PIN_FILES
from bot.config.pins import Pin, find_pins
from bot.config.sections import exact_pin
from bot.errors import ConfigError, ProvisionError
from bot.toolchains.commit_toolchain import RECORD, check_smoke, make_recorded
from bot.toolchains.installer import IndexUnreachableError, Installer, UnknownReleaseError
from bot.toolchains.probe import compile_bytecode, probe
from bot.toolchains.registry import OnProgress, ReadFile, ReadyToolchain, ToolchainSpec, provisioner
from fuzzing import backends
from fuzzing.cases.programs import get_kind


@provisioner("release", configurable=True)
class ReleaseProvisioner:
    """Installs a pinned release into a venv, cached by digest."""

    def resolve(
        self, config: RepositoryConfig, read: ReadFile, _data_dir: Path | None = None
    ) -> ToolchainSpec:
        """The release that the repository pins; raises ConfigError if there is no exact pin."""
        adapter = backends.get(config.backend)
        package = config.toolchain.package or adapter.package
        file, pin = _find_pin(config.toolchain.pin, package, read)
        version = pin.version
        assert version is not None
        extra = config.toolchain.extra
        # The backend lists its own package too; the repository's word on a package goes before it.
        covered = {_name(item) for item in (package, adapter.package, *extra)}
        needed = [
            item for item in adapter.requirements(_three_part_version(version)) if _name(item) not in covered
        ]
        covered |= {_name(item) for item in needed if exact_pin(Requirement(item))}
        references = [
            _reference_pin(name, file, config, read)
            for name in reference_packages(config)
            if _name(name) not in covered
        ]
        covered |= {_name(item) for item in references}
        references += [
            _pin_if_any(name, file, read) for name in exporters(config) if _name(name) not in covered
        ]
        reference_names = {_name(item) for item in references}
        needed = [item for item in needed if _name(item) not in reference_names]
        return ToolchainSpec(
            provisioner="release",
            backend=config.backend,
            requirements=(f"{package}=={version}", *needed, *references, *extra),
            label=f"{package} {version}",
            source=f"{file}, line {pin.line}" if pin.line else file,
        )

    def provision(self, spec: ToolchainSpec, data_dir: Path, progress: OnProgress) -> ReadyToolchain:
        """The venv of this release, installed now or found from before.

        Raises BrokenSourcesError if its compiler fails the smoke test: such a release accuses nobody.
        """
        folder, made = make_recorded(spec, data_dir, lambda partial: _build(partial, spec, progress))
        progress(f"{spec.label}: installed{'' if made else ' before'}")
        return _load(folder, spec)


def reference_packages(config: RepositoryConfig) -> tuple[str, ...]:
    """The reference packages that must be in the toolchain.

    ONNX's evaluator runs in Assay's environment; torch and Keras must be those that the compiler works with.
    """
    found = [name for kind in _kinds(config) for name in backends.reference_packages(kind) if name != "numpy"]
    return tuple(dict.fromkeys(found))


def exporters(config: RepositoryConfig) -> tuple[str, ...]:
    """The packages by which the cases' programs become what the compiler reads."""
    found = backends.get(config.backend).exporters
    return tuple(dict.fromkeys(name for kind in _kinds(config) for name in found.get(kind, ())))


def _kinds(config: RepositoryConfig) -> list[str]:
    """The kinds of the cases' programs but ONNX models, which need no library in the toolchain."""
    libraries = {names.source_libraries()[source] for source in config.sources}
    wanted = {config.frontend, *libraries} - {None, "onnx"}
    return [kind for kind in backends.get(config.backend).kinds if get_kind(kind).frontend in wanted]


def _pin_if_any(name: str, file: str, read: ReadFile) -> str:
    """The exact pin of a package in the repository's pin file, else its bare name."""
    pins = [pin for pin in find_pins(read(file) or b"", file, [name]) if pin.version is not None]
    return f"{name}=={pins[0].version}" if pins else name


def _reference_pin(name: str, file: str, config: RepositoryConfig, read: ReadFile) -> str:
    """The exact pin of a reference package, which must be in the repository's pin file."""
    pins = [pin for pin in find_pins(read(file) or b"", file, [name]) if pin.version is not None]
    if not pins:
        raise ConfigError(
            f"the cases of {', '.join(config.sources)} run in {name}, which must be in the toolchain; "
            f"pin it in {file}, or add it here, such as {name}==VERSION",
            key="toolchain.extra",
        )
    return f"{name}=={pins[0].version}"


def _three_part_version(version: str) -> str:
    """2024 as 2024.0.0: the same release to pip, and what backends expect."""
    parsed = Version(version)
    plain = str(parsed) == ".".join(map(str, parsed.release))
    return f"{version}{'.0' * (3 - len(parsed.release))}" if plain else version


def _find_pin(file: str, package: str, read: ReadFile) -> tuple[str, Pin]:
    """The exact pin of `package`, and the file that holds it; pyproject.toml helps out."""
    tried = []
    for candidate in dict.fromkeys((file, PIN_FILES[-1])):
        content = read(candidate)
        if content is None:
            tried.append(f"{candidate} is not there")
            continue
        pins = find_pins(content, candidate, [package])
        if pins:
            return candidate, _exact_pin(pins, candidate)
        tried.append(f"{candidate} does not name {package}")
    raise ConfigError(
        f"no release to test: {' and '.join(tried)}. "
        f"Write '{package}==VERSION' into {file}, or name the file that pins it",
        key="toolchain.pin",
    )


def _exact_pin(pins: list[Pin], file: str) -> Pin:
    for pin in pins:
        if pin.version is None:
            where = f"line {pin.line} of {file}" if pin.line else file
            raise ConfigError(
                f"{where} asks for {pin.text!r}, which is not one release; write '{pin.package}==VERSION'",
                key="toolchain.pin",
            )
    versions = sorted({str(pin.version) for pin in pins})
    if len(versions) > 1:
        raise ConfigError(
            f"{file} pins {pins[0].package} to several releases, {' and '.join(versions)}; keep one",
            key="toolchain.pin",
        )
    return pins[0]


def _build(folder: Path, spec: ToolchainSpec, progress: OnProgress) -> dict[str, Any]:
    installer = Installer(folder.parent)
    progress(f"{spec.label}: installing {' '.join(spec.requirements)}")
    python = installer.make_venv(folder)
    try:
        hashes = installer.install(python, spec.requirements)
    except IndexUnreachableError as error:
        raise IndexUnreachableError(f"{spec.label} cannot be installed: {error}") from None
    except ProvisionError as error:
        raise _with_advice(error, spec, installer) from None
    progress(f"{spec.label}: importing it once")
    adapter = backends.get(spec.backend)
    found = probe(python, adapter.import_name, environment=adapter.environment)
    compile_bytecode(folder, found.sources)
    check_smoke(folder, spec, progress)
    wanted = [_name(item) for item in (*spec.requirements, *adapter.packages)]
    return {
        "label": spec.label,
        "versions": {"python": found.python, **found.packages},
        "requirements": [
            f"{name}=={found.packages[name]}" for name in dict.fromkeys(wanted) if name in found.packages
        ],
        "hashes": hashes,
    }


def _with_advice(error: ProvisionError, spec: ToolchainSpec, installer: Installer) -> ProvisionError:
    package, _, version = spec.requirements[0].partition("==")
    where = f"{spec.source} pins it" if spec.source else "it was asked for"
    near = installer.nearest_releases(package, version)
    advice = f"; releases nearby that can be installed: {', '.join(near)}" if near else ""
    # As uv words it: "there is no version of openvino==1" and "openvino==2022.1 has no wheels with …".
    unknown = any(
        words in str(error) for words in (f"no version of {package}", f"{package}=={version} has no wheels")
    )
    kind = UnknownReleaseError if unknown else ProvisionError
    return kind(f"{spec.label} cannot be installed.\n{error}\nTo fix: {where}{advice}")


def _name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


def _load(folder: Path, spec: ToolchainSpec) -> ReadyToolchain:
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    python = str(folder / "bin" / "python")
    return ReadyToolchain(spec, spec.digest, python, record["versions"], tuple(record["requirements"]))

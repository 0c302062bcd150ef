"""Rows of toolchains."""

from __future__ import annotations

import dataclasses

from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from bot.store.models import Base
from bot.store.toolchains import find_toolchain, list_toolchains, record_toolchain
from bot.toolchains import Ready, Spec

SPEC = Spec("release", "openvino", ("openvino==2024.0.0",), "openvino 2024.0.0")
READY = Ready(SPEC, SPEC.digest, "/x/bin/python", {"openvino": "2024.0.0"}, ("openvino==2024.0.0",))


def test_a_toolchain_is_recorded_once_and_kept_up_to_date() -> None:
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        record_toolchain(session, READY)
        moved = dataclasses.replace(READY, python="/y/bin/python")
        assert record_toolchain(session, moved).python == "/y/bin/python"
    with Session(engine) as session:
        row = find_toolchain(session, READY.digest)
        assert row is not None
        assert (row.backend, row.provisioner, row.label) == ("openvino", "release", "openvino 2024.0.0")
        assert (row.versions, row.requirements) == ({"openvino": "2024.0.0"}, ["openvino==2024.0.0"])
        assert [item.digest for item in list_toolchains(session)] == [READY.digest]
        assert find_toolchain(session, "0" * 64) is None
    engine.dispose()

"""What GitHub has sent to others: 329 payloads of 58 events, as people have contributed them.

    python tests/github_api/examples.py index.json

writes `webhook_examples.json.gz` beside this file. The input is `api.github.com/index.json` of the npm
package @octokit/webhooks-examples 7.6.1 (MIT licence, see LICENSE beside this file). Descriptions and
lists of properties are dropped, the payloads are kept as they are.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("webhook_examples.json.gz")


def load() -> dict[str, list[dict[str, Any]]]:
    """Event → payloads."""
    found: dict[str, list[dict[str, Any]]] = json.loads(gzip.decompress(_FILE.read_bytes()))
    return found


def main(path: str) -> None:
    """Writes the file."""
    events = {event["name"]: event["examples"] for event in json.loads(Path(path).read_text())}
    text = json.dumps(events, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    _FILE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(sys.argv[1])

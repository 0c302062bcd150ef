"""Starts and cancels runs of a workflow: GitHub's documentation, "REST API endpoints for workflows"."""

from __future__ import annotations

from collections.abc import Mapping

from bot.github.client import Client
from bot.github.github_api import GitHubApi
from bot.github.identity import DISPATCHER
from bot.github.requests import Request, checked_target

#: States of runs that can be cancelled.
_STATES = ("queued", "in_progress", "waiting")


class WorkflowDispatcher:
    """A workflow of a repository, run at one branch or tag.

    Its runs are named `assay NAME` by its `run-name`, as a dispatch gives no id.
    """

    def __init__(self, github_api: GitHubApi, repository: str, workflow: str, ref: str) -> None:
        self._api, self._repository = github_api, checked_target(repository)
        self._path = f"/repos/{self._repository}/actions"
        self._workflow, self._ref = workflow, ref

    def dispatch(self, inputs: Mapping[str, str]) -> None:
        """See `bot.runners.protocol.Dispatcher`."""
        body = {"ref": self._ref, "inputs": dict(inputs)}
        path = f"{self._path}/workflows/{self._workflow}/dispatches"
        self._client.send(Request("POST", path, body), "actions: write")

    def cancel(self, name: str) -> None:
        """See `bot.runners.protocol.Dispatcher`."""
        path = f"{self._path}/workflows/{self._workflow}/runs"
        for state in _STATES:
            for run in self._client.pages(path, key="workflow_runs", event="workflow_dispatch", status=state):
                if run["display_title"] == f"assay {name}":
                    self._client.send(
                        Request("POST", f"{self._path}/runs/{run['id']}/cancel", None), "actions: write"
                    )

    @property
    def _client(self) -> Client:
        return self._api.client(self._repository, DISPATCHER)

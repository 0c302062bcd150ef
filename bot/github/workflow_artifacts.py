"""What a repository's own workflows of GitHub Actions built.

GitHub answers the download of an artifact with a redirect to a store of files, for a minute ("Download an
artifact", REST API). That server gets no token of ours.
"""

from __future__ import annotations

from pathlib import Path

import requests
from github.WorkflowRun import WorkflowRun

from bot.commit_files import CiArtifact, CiRun
from bot.downloads import download
from bot.errors import InfrastructureError, RefusalError
from bot.github.github_api import GitHubApi
from bot.github.identity import BUILDS
from bot.github.limits import TIMEOUT_S
from bot.github.requester import raw
from bot.github.requests import checked_target
from bot.github.responses import expected_shape


class WorkflowArtifacts:
    """Reads runs of workflows and their artifacts; the App needs `actions: read`."""

    def __init__(self, github_api: GitHubApi) -> None:
        self._github_api = github_api

    def workflow_run(self, target: str, sha: str, workflow: str) -> CiRun | None:
        """The newest run of a workflow for a commit, None if there is none. Raises as `Client.get` does."""
        api = self._github_api.client(checked_target(target), BUILDS).api()
        repository = api.repository(target)
        with expected_shape(f"the runs of {workflow}"):
            found = map(raw, repository.get_workflow(workflow).get_runs(head_sha=sha))
            runs = sorted(found, key=lambda one: int(one["id"]))
            if not runs:
                return None
            run, finished = runs[-1], runs[-1]["status"] == "completed"
            failed, url = run["conclusion"] != "success", str(run["html_url"])
            number = int(run["id"])
        if not finished:
            return CiRun(url, finished=False, failed=False)
        listed = {"artifacts_url": f"{repository.url}/actions/runs/{number}/artifacts"}
        with expected_shape(f"the artifacts of {url}"):
            artifacts = map(raw, WorkflowRun(api, attributes=listed).get_artifacts())
            kept = tuple(
                CiArtifact(
                    int(one["id"]),
                    str(one["name"]),
                    int(one["size_in_bytes"]),
                    str(one.get("digest") or "").removeprefix("sha256:"),
                )
                for one in artifacts
                if not one["expired"]
            )
        return CiRun(url, finished=True, failed=failed, artifacts=kept)

    def download_artifact(self, target: str, artifact: int, place: Path, max_bytes: int) -> None:
        """Writes the archive of an artifact to a file.

        Raises RefusalError without access or if it is larger, InfrastructureError if a retry may succeed.
        """
        token = self._github_api.identity.token(checked_target(target), BUILDS)
        path = f"/repos/{target}/actions/artifacts/{artifact}/zip"
        try:
            answer = requests.get(
                self._github_api.url + path,
                headers={"Authorization": f"token {token}"},
                allow_redirects=False,
                timeout=TIMEOUT_S,
            )
        except requests.RequestException as error:
            raise InfrastructureError(f"GitHub did not answer: {type(error).__name__}") from error
        if answer.status_code != requests.codes.found or "location" not in answer.headers:
            raise RefusalError(f"GitHub does not give artifact {artifact}: status {answer.status_code}")
        download(answer.headers["location"], place, max_bytes)

"""The proof of a batch: each test passes each time, in the files with the tests chosen before it."""

from __future__ import annotations

from bot.errors import RefusalError
from bot.proposals.proof import Proof, RunTest, TestBuild, proof_files, prove_passing
from bot.proposals.proposal import Proposal
from bot.proposals.tree import Tree
from bot.proposals.writer import get_writer

#: Tests that are run for a batch; each run starts a process that imports the compiler.
MAX_TRIES = 15


class BatchProof:
    """Decides which tests enter a batch. A test that fails, fails once or is slow costs itself only.

    proofs   of the tests that entered, in their order
    refusal  why the last of the others did not
    """

    def __init__(self, tree: Tree, build: TestBuild, run: RunTest) -> None:
        self._tree, self._build, self._run = tree, build, run
        self._accepted: list[Proposal] = []
        self._tries = 0
        self.proofs: list[Proof] = []
        self.refusal = ""

    def accepts(self, proposal: Proposal) -> bool:
        """Whether a test enters; False without a run after MAX_TRIES tests."""
        if self._tries == MAX_TRIES or not get_writer(proposal.writer).is_provable:
            return False
        self._tries += 1
        try:
            proof = prove_passing(proposal, self._tree, self._build, self._run)
            self._require_others(proposal)
        except RefusalError as error:
            self.refusal = str(error)
            return False
        self._accepted.append(proposal)
        self.proofs.append(proof)
        return True

    def _require_others(self, proposal: Proposal) -> None:
        """Raises RefusalError if a test of the same file fails beside the new one."""
        files, timeout_s = proof_files(proposal, self._tree), get_writer(proposal.writer).timeout_s
        for one in self._accepted:
            if one.path != proposal.path:
                continue
            if not self._run(self._build.python, files, one.command, timeout_s).passed:
                raise RefusalError(f"{one.name} fails beside {proposal.name}")

"""The daemon keeps to its own description of its API, whatever it is asked."""

import subprocess

import pytest

from tests.real.processes import INSTALLED, endpoints
from tests.real.wires import CHAT, MESSAGES, RESPONSES
from tidegate.lab import Lab, chat, messages, responses


pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

ANSWERS = {
    "/chat/completions": chat.answer("Hello"),
    "/responses": responses.answer("Hello"),
    "/messages": messages.answer("Hello"),
}
SEED, EXAMPLES = 7, 25
# It takes a value for good if its schema does: but which model there is, and whether a payload
# makes sense, is told by the configuration and the provider.
TOO_STRICT = "positive_data_acceptance"


def answer(request):
    """A provider that likes whatever it is asked: what fails after that is the daemon's."""
    return next(found for path, found in ANSWERS.items() if request.path.endswith(path))


@pytest.mark.parametrize(
    ("key", "phases"),
    [("", "coverage,fuzzing,stateful"), ("secret", "coverage")],
    ids=["open", "locked"],
)
def test_no_answer_is_one_that_is_not_described(serve, tmp_path, monkeypatch, key, phases):
    monkeypatch.setenv("TEST_DAEMON_KEY", key)
    top = 'keys = ["env:TEST_DAEMON_KEY"]' if key else ""
    with Lab(route=answer) as lab:
        tables = endpoints(lab.url.removesuffix("/v1"), CHAT, RESPONSES, MESSAGES, models="any")
        daemon = serve(tables, "[policy]\nretries = 0\n", top=f"drain_s = 1\n{top}")
        command = [
            INSTALLED / "bin/schemathesis",
            "run",
            f"{daemon.url}/openapi.json",
            f"--seed={SEED}",
            f"--max-examples={EXAMPLES}",
            "--generation-database=none",
            f"--exclude-checks={TOO_STRICT}",
            f"--phases={phases}",
            *(["--header=Authorization: Bearer secret"] if key else []),
        ]
        done = subprocess.run(
            list(map(str, command)), cwd=tmp_path, capture_output=True, text=True, check=False
        )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout

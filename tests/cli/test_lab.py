"""``tidegate lab``, as a process."""

import signal
import urllib.request


def test_lab_serves_until_ctrl_c(command):
    process = command("lab")
    url = process.stdout.readline().strip()
    with urllib.request.urlopen(f"{url}/models", timeout=20) as response:
        assert b"lab" in response.read()
    process.send_signal(signal.SIGINT)

    assert process.wait(20) == 0
    assert process.stderr.read() == ""


def test_file_that_is_not_there_is_wrong_use(tidegate):
    status, _, errors = tidegate("lab", "no-such-file")

    assert status == 2
    assert "no-such-file" in errors


def test_file_of_another_form_is_wrong_use(tidegate, tmp_path):
    path = tmp_path / "script.json"
    path.write_text("not JSON")
    status, _, errors = tidegate("lab", path)

    assert status == 2
    assert "script.json" in errors
    assert "Traceback" not in errors


def test_port_that_cannot_be_is_wrong_use(tidegate):
    status, _, errors = tidegate("lab", "--port", "99999")

    assert status == 2
    assert "--port" in errors
    assert "65535" in errors
    assert "Traceback" not in errors

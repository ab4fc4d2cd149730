"""``tidegate demo``, as a process, without the local model."""

import os
import sys


def test_demo_tells_the_whole_story(tidegate, tmp_path):
    environment = {
        **os.environ,
        "TIDEGATE_CACHE_DIR": str(tmp_path),
        "COLUMNS": "80",
        "PYTHONIOENCODING": "utf-8",
    }
    status, shown, errors = tidegate("demo", env=environment)

    assert (status, errors) == (0, "")
    assert "for want of a local model" in shown
    assert "tidegate local fetch" in shown or "tidegate[local]" in shown  # the way out
    assert "The tide turns" in shown
    assert shown.count("fence: nothing came for") == 2
    assert shown.count("void: its") == 2
    assert 'write_file({"path": "tides.txt", "content": "tides turn daily"})' in shown
    assert shown.count("median") == 2
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown
    if sys.platform == "linux":  # where it finds the process that it freezes
        assert "late: refused" in shown
        assert "whose token" in shown

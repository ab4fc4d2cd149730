"""The page as it is served, and what it may do in a browser."""

import re
from pathlib import Path

import pytest

import tidegate.daemon.page
from tests.daemon.e2e.conftest import endpoint
from tidegate.daemon.page.routes import FILES
from tidegate.lab import Lab


HERE = Path(tidegate.daemon.page.__file__).parent


@pytest.fixture
def daemon(serve):
    with Lab([]) as lab:
        yield serve(endpoint(lab))


def test_page_is_served_and_may_load_nothing_from_elsewhere(daemon):
    with daemon.client() as client:
        pages = {path: client.get(path) for path in FILES}

    for path, page in pages.items():
        assert page.status_code == 200, path
        assert page.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert pages["/"].headers["content-type"] == "text/html; charset=utf-8"
    assert "<title>tidegate</title>" in pages["/"].text


def test_page_asks_for_nothing_but_its_own_files():
    text = "".join((HERE / name).read_text() for name, _ in FILES.values())
    text = text.replace("http://www.w3.org/2000/svg", "")

    assert not re.search(r"https?:|//[a-z0-9-]+\.[a-z]", text)
    asked = set(re.findall(r'(?:src|href)="([^"]+)"', text))
    assert asked <= {*FILES}


def test_page_makes_no_markup_of_what_it_is_told():
    script = (HERE / "page.js").read_text()
    html = (HERE / "page.html").read_text()

    for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert name not in script
    assert not re.search(r"\son\w+=|\sstyle=|<style", html)

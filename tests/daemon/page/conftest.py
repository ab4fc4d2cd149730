"""Daemons for the page's tests, as those of all of the daemon's tests begin them."""

from tests.daemon.e2e.conftest import serve  # noqa: F401 - a fixture

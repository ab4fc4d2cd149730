"""What connections share."""

from tidegate.actors.provider.network import tls_context


def test_context_that_was_made_ahead_is_the_one_that_requests_take():
    assert tls_context() is tls_context(True)

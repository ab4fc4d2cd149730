"""Who signs: regions, profiles, roles and keys, as botocore finds them.

Path: ``provider/bedrock_client.py`` -> this
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.exceptions import NoRegionError
from botocore.loaders import Loader, create_loader
from botocore.session import Session

from tidegate.protocol.attempts import Target


BEARER_VARIABLE = "AWS_BEARER_TOKEN_BEDROCK"
ROLE_SESSION_NAME = "tidegate"


class NoRegion(Exception):
    """Nobody said where."""


class NoCredentials(Exception):
    """Nobody said as whom."""


NO_REGION = "there is no region: give region to the endpoint, or set AWS_DEFAULT_REGION"
NO_CREDENTIALS = (
    "there are no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give "
    "profile or api_key to the endpoint"
)

_STS_S = 10.0
"""How long another service of AWS may take, of which credentials are asked."""

_SERVICE = "bedrock-runtime"
_ONE_ATTEMPT = {"total_max_attempts": 1, "mode": "standard"}


def _loaded() -> Loader:
    """Return a loader that has read what every client wants, which takes longer than all else."""
    loader = create_loader()
    for name in ("endpoints", "partitions", "sdk-default-configuration"):
        loader.load_data(name)
    for kind in ("service-2", "endpoint-rule-set-1"):
        loader.load_service_model(_SERVICE, kind)
    return loader


_loader = _loaded()  # with the import, so that workers have it from the process they come from


class Made(NamedTuple):
    """A client of botocore for Bedrock, and what belongs to it.

    Attributes:
        target: as it was given, but with the address and the certificates that were found.
        credentials: of botocore; None if there are none.
    """

    client: Any
    target: Target
    credentials: Any


def client_from(target: Target) -> Made:
    """Return a client, which may have to ask this machine's cloud for credentials first.

    It works on the environment of this process, so that no two may be made at the same time.

    Raises:
        botocore.exceptions.BotoCoreError: there is no region, no such profile, and so on.
    """
    options = dict(target.options)
    _adopt({name: value for name, value in options.items() if name.startswith("AWS_")})
    session = Session(profile=options.get("profile"))
    if not session.get_config_variable("data_path"):
        session.register_component("data_loader", _loader)
    proxies = {"http": target.proxy, "https": target.proxy} if target.proxy else None
    # What it says holds for the services behind the credentials too.
    config = Config(
        connect_timeout=_STS_S, read_timeout=_STS_S, retries=_ONE_ATTEMPT, proxies=proxies
    )
    session.set_default_client_config(config)
    if isinstance(target.verify, str):
        session.set_config_variable("ca_bundle", target.verify)
    if region := options.get("region"):
        session.set_config_variable("region", region)
    if role_arn := options.get("role_arn"):
        role = _Role(session, role_arn)
        session.register_component("credential_provider", role)
    try:
        client = session.create_client(_SERVICE, endpoint_url=target.base_url or None)
    except NoRegionError as error:
        raise NoRegion(NO_REGION) from error
    verify = target.verify
    if verify is True:
        verify = session.get_config_variable("ca_bundle") or True
    found = msgspec.structs.replace(target, base_url=client.meta.endpoint_url, verify=verify)
    return Made(client, found, session.get_credentials())


def _adopt(variables: Mapping[str, str]) -> None:
    """Make the variables of AWS in this process those of the host when the request started."""
    wanted = {name: value for name, value in variables.items() if name != BEARER_VARIABLE}
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        if name not in wanted:
            del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


class _Role:
    """Provides the credentials of a role, which the session's own credentials may assume.

    Args:
        session: whose provider of credentials it takes the place of.
        role_arn: the role.
    """

    def __init__(self, session: Session, role_arn: str) -> None:
        self._session = session
        self._role_arn = role_arn
        self._own = session.get_component("credential_provider")

    def load_credentials(self) -> DeferredRefreshableCredentials:
        """Return credentials that are fetched when they are first needed, and before they expire.

        Raises:
            NoCredentials: there is nobody who could assume the role.
        """
        own = self._own.load_credentials()
        if own is None:
            raise NoCredentials(NO_CREDENTIALS)
        fetcher = AssumeRoleCredentialFetcher(
            self._session.create_client,
            own,
            self._role_arn,
            extra_args={"RoleSessionName": ROLE_SESSION_NAME},
        )
        return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")

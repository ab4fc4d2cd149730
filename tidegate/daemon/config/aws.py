"""Where AWS is and as whom, by its own variables and files, without its SDK.

It looks where botocore will look in a worker, so that what is missing there is said at once.
"""

from __future__ import annotations

import configparser
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from tidegate.errors import ConfigurationError
from tidegate.protocol.endpoint_checks import check_region as check_name


_REGION = "AWS_DEFAULT_REGION"
_PROFILES = ("AWS_DEFAULT_PROFILE", "AWS_PROFILE")
_CONFIG = ("AWS_CONFIG_FILE", "~/.aws/config")
_CREDENTIALS = ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
_DEFAULT = "default"


def check_region(region: str | None, profile: str | None, environ: Mapping[str, str]) -> None:
    """Check that somebody says where, and what can be: the endpoint, the environment or a profile.

    Args:
        region: of the endpoint, if it gives one.
        profile: the same.
        environ: the environment.

    Raises:
        ConfigurationError: nobody does, there can be no such region, or the files with the
            profiles are of no use.
    """
    if region is not None:
        return  # the endpoint has checked it
    if _REGION in environ:
        found, by = environ[_REGION].strip(), _REGION  # though it is blank, no profile is asked
    else:
        found = _profile(profile, environ).get("region", "").strip()
        by = "the AWS profile's region"
    if found:
        check_name(by, found, "converse")
    else:
        other = " (AWS_REGION is not read)" if environ.get("AWS_REGION") else ""
        raise ConfigurationError(
            f"the wire 'converse' has no region: give region, such as 'eu-west-1', or set "
            f"{_REGION}{other}, or give a region to the profile in AWS's own files"
        )


def check_profile(profile: str | None, environ: Mapping[str, str]) -> None:
    """Check that there is such a profile, if one is named here or in the environment.

    Raises:
        ConfigurationError: there is none, or the files with the profiles are of no use.
    """
    _profile(profile, environ)


def _profile(given: str | None, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return what holds in the profile that is named, or in the default one."""
    name = given
    for variable in _PROFILES:
        name = environ.get(variable) if name is None else name
    profiles = _profiles(environ)
    if name is None:
        return profiles.get(_DEFAULT, {})
    if name not in profiles:
        files = " and ".join(repr(environ.get(*each)) for each in (_CONFIG, _CREDENTIALS))
        raise ConfigurationError(f"profile={name!r}: there is none in {files}: name another one")
    return profiles[name]


def _profiles(environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    profiles = {
        name: values
        for section, values in _sections(environ.get(*_CONFIG)).items()
        if (name := _named_by(section)) is not None
    }
    for name, values in _sections(environ.get(*_CREDENTIALS)).items():
        profiles.setdefault(name, {}).update(values)
    return profiles


def _sections(path: str) -> dict[str, dict[str, str]]:
    """Return the sections of a file; none if it is not there."""
    parser = configparser.RawConfigParser()
    # As botocore does it: a user that does not exist is no error, and a pipe is no file.
    file = Path(os.path.expanduser(os.path.expandvars(path)))  # noqa: PTH111
    try:
        parser.read([file] if file.is_file() else [])
    except (configparser.Error, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"AWS's own file {path!r} cannot be read as one ({type(error).__name__}): mend it"
        ) from error
    return {section: dict(parser.items(section)) for section in parser.sections()}


def _named_by(section: str) -> str | None:
    """Return the profile that a section of the configuration file is about."""
    if section == _DEFAULT:
        return section
    try:
        words = shlex.split(section)
    except ValueError:
        return None
    return words[1] if section.startswith("profile") and len(words) == 2 else None

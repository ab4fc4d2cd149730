"""Machine codes of providers, lower case and without ``_``, ``-`` and ``.``, and their kinds."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.protocol.failures import FailureKind


def _by_code(codes: Mapping[FailureKind, str]) -> dict[str, FailureKind]:
    return {code: kind for kind, words in codes.items() for code in words.split()}


DECISIVE_CODES = _by_code(
    {
        FailureKind.QUOTA_EXHAUSTED: """
            arrearage billingerror billinghardlimitreached billingnotactive
            exceededcurrentquotaerror insufficientbalance insufficientcredits insufficientfunds
            insufficientquota paymentrequired quotaexceeded quotaexhausted usagelimitreached
        """,
        FailureKind.CONTEXT_OVERFLOW: """
            contextlengthexceeded contextwindowexceeded contextwindowexceedederror
            exceedcontextsizeerror inputtoolong modelcontextwindowexceeded prompttoolong
            tokenslimitreached
        """,
        FailureKind.CONTENT_REFUSED: """
            biopolicy contentfilter contentfiltererror contentpolicyviolation
            contentpolicyviolationerror cyberpolicy datainspectionfailed
            imagecontentpolicyviolation misalignmentpolicyviolation moderationblocked
            prohibitedcontent responsibleaipolicyviolation
        """,
        FailureKind.OVERLOADED: """
            capacityexceeded engineoverloaded engineoverloadederror modeloverloaded overloaded
            overloadederror serverisoverloaded serveroverloaded serviceoverloaded slowdown
        """,
        FailureKind.AUTH: "apikeyinvalid invalidapikey",
    }
)
"""Codes that hold whatever the status says."""

PLAIN_CODES = _by_code(
    {
        FailureKind.RATE_LIMITED: """
            ratelimit ratelimited ratelimiterror ratelimitexceeded ratelimitreached
            ratelimitreachederror requestlimitexceeded requests resourceexhausted throttled
            throttling throttlingexception tokens toomanyrequests toomanyrequestserror
        """,
        FailureKind.AUTH: """
            accessdenied authenticationerror forbidden invalidauthentication
            invalidauthenticationerror permissiondenied permissiondeniederror permissionerror
            unauthenticated unauthorized
        """,
        FailureKind.BAD_REQUEST: """
            badrequest badrequesterror dataresidencymismatch emptyimagefile
            failedprecondition failedtodownloadimage imagefilenotfound imagefiletoolarge
            imageparseerror imagetoolarge imagetoosmall invalidargument invalidbase64image
            invalidimage invalidimageformat invalidimagemode invalidimageurl invalidparameter
            invalidprompt invalidrequesterror invalidvalue modelnotfound modelnotfounderror
            notfound notfounderror previousresponsenotfound requesttoolarge
            unprocessableentityerror unsupportedimagemediatype unsupportedparameter
            unsupportedvalue validation validationerror
        """,
    }
)
"""Codes that tell what a status would, where there is none."""

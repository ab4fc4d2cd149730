"""What tests of the converse wire share: a signature that is checked, an answer that is valid."""

import hashlib
import hmac
import json
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import botocore.session
from botocore.parsers import create_parser
from botocore.validate import ParamValidator


_CONVERSE = (
    botocore.session.Session()
    .get_service_model("bedrock-runtime")
    .operation_model("Converse")
    .output_shape
)


def valid(native):
    """Check a response with AWS's own model, and return it as boto3 would."""
    response = {"body": json.dumps(native).encode(), "headers": {}, "status_code": 200}
    parsed = create_parser("rest-json").parse(response, _CONVERSE)
    parsed.pop("ResponseMetadata")
    errors = ParamValidator().validate(parsed, _CONVERSE)
    assert not errors.has_errors(), errors.generate_report()
    return parsed


def signature_of(request, secret):
    """Return the signature that a request has, and the one that AWS would compute of it."""
    fields = dict(
        field.split("=", 1)
        for field in request.headers["authorization"].partition(" ")[2].split(", ")
    )
    date, region, service, _ = fields["Credential"].split("/")[1:]
    parts = urlsplit(request.target)
    query = sorted(
        (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    )
    names = fields["SignedHeaders"].split(";")
    canonical = "\n".join(
        [
            "POST",
            # All services but S3 encode a path that is encoded already once more.
            "/".join(quote(each, safe="-_.~") for each in parts.path.split("/")),
            "&".join(f"{name}={value}" for name, value in query),
            *[f"{name}:{' '.join(request.headers[name].split())}" for name in names],
            "",
            fields["SignedHeaders"],
            hashlib.sha256(request.body).hexdigest(),
        ]
    )
    scope = f"{date}/{region}/{service}/aws4_request"
    stamp = request.headers["x-amz-date"]
    to_sign = (
        f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    )
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return fields["Signature"], hmac.new(key, to_sign.encode(), "sha256").hexdigest()


def model_of(request):
    """Return the model that a request names in its path."""
    return unquote(request.path.split("/")[2])

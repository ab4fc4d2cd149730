"""The lab's certificate: self-signed, for 127.0.0.1 and localhost, valid until 2120.

Its key is public, so nothing outside a test may ever trust it. It is kept here as text because
neither the standard library nor every machine can make one.

"""

from __future__ import annotations

from pathlib import Path


CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBfTCCASSgAwIBAgICEAEwCgYIKoZIzj0EAwIwFzEVMBMGA1UEAwwMdGlkZWdh
dGUgbGFiMCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAXMRUwEwYD
VQQDDAx0aWRlZ2F0ZSBsYWIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATsFsHh
6wwOVT/t7ULUGfzgRXPQE7K7HW72NTrbtW9ZaKjz7e/t+GtF4jFZXpZdRafn9WL/
zAmv6Y6ftnX+lYieo14wXDAdBgNVHQ4EFgQUvHdC3reTeseW8yLr53gI2/z1xEgw
GgYDVR0RBBMwEYcEfwAAAYIJbG9jYWxob3N0MA8GA1UdEwEB/wQFMAMBAf8wDgYD
VR0PAQH/BAQDAgKEMAoGCCqGSM49BAMCA0cAMEQCIFUNJ0E9zjxZemYt5oYcOYqZ
Hd7BujeUSZpv2CMbSI8VAiALrGekHhR/VmKsSVj2hX0M23lfslbagsbqTbn3oQEY
1A==
-----END CERTIFICATE-----
"""

KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgooi7EQBvV27tHzde
huLQfKWFm5lMmK+ZXvuTLbKX42ahRANCAATsFsHh6wwOVT/t7ULUGfzgRXPQE7K7
HW72NTrbtW9ZaKjz7e/t+GtF4jFZXpZdRafn9WL/zAmv6Y6ftnX+lYie
-----END PRIVATE KEY-----
"""


def write_credentials(folder: Path) -> tuple[Path, Path]:
    """Write ``cert.pem`` and ``key.pem``, which is the only form ``ssl`` takes, and return them."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    certificate.write_text(CERTIFICATE)
    key.write_text(KEY)
    return certificate, key

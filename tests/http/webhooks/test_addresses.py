"""No webhook reaches an address that is not public, however the address is written."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from ropewalk.errors import InvalidInput
from ropewalk.http.webhooks import addresses
from ropewalk.http.webhooks.addresses import ForbiddenAddress, checked_url, is_allowed, resolve

FORBIDDEN_URLS = [
    "http://example.com/",
    "ftp://example.com/",
    "//example.com/",
    "example.com",
    "https://",
    "https:///path",
    "https://user@example.com/",
    "https://user:word@example.com/",
    "https://example.com:80/",
    "https://example.com:22/",
    "https://example.com:1023/",
    "https://example.com:99999/",
    "https://example.com\\@127.0.0.1/",
    "https://exam ple.com/",
    "https://example.com/\r\nX: y",
    "https://exämple.com/",
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://0/",
    "https://10.0.0.1/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://172.16.0.1/",
    "https://192.168.0.1/",
    "https://192.0.0.170/",
    "https://192.88.99.1/",
    "https://224.0.0.1/",
    "https://255.255.255.255/",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[2001::1]/",
    "https://[2001:db8::1]/",
    "https://[3fff::1]/",
    "https://[fc00::1]/",
    "https://[fe80::1]/",
    "https://[ff02::1]/",
    "https://[::1",
    "https://example.com/" + "a" * 2048,
]


@pytest.mark.parametrize("url", FORBIDDEN_URLS)
def test_a_forbidden_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="callback_url"):
        checked_url(url, "callback_url")


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("https://example.com", "example.com", 443, "/"),
        ("https://example.com:8443/hook?a=1", "example.com", 8443, "/hook?a=1"),
        ("https://93.184.216.34/x", "93.184.216.34", 443, "/x"),
        ("https://[2606:2800:220:1::1]/", "2606:2800:220:1::1", 443, "/"),
    ],
)
def test_a_public_url_is_taken_apart(url: str, host: str, port: int, path: str) -> None:
    target = checked_url(url)
    assert (target.host, target.port, target.path) == (host, port, path)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "2a00:1450::1"])
def test_public_addresses_are_allowed(address: str) -> None:
    assert is_allowed(ip_address(address))


async def test_a_name_that_resolves_to_this_machine_is_refused() -> None:
    with pytest.raises(ForbiddenAddress, match=r"localhost resolves to (127\.0\.0\.1|::1), which is not"):
        await resolve(addresses.Target("localhost", 443, "/"))

"""Which network addresses an endpoint may live at: public ones, and those the operator allows."""

import ipaddress
import socket
from collections.abc import Callable, Iterator, Sequence

from runner.endpoint.errors import EndpointError, Kind

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolver = Callable[[str, int], list[str]]

# Cloud metadata services; the standard library calls some of them global.
_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "100.100.100.200",
        "168.63.129.16",
        "169.254.169.254",
        "169.254.170.2",
        "192.0.0.192",
        "fd00:ec2::254",
    )
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
_IPV4_COMPATIBLE = ipaddress.IPv6Network("::/96")


def parse_networks(text: str) -> tuple[Network, ...]:
    """Read a comma-separated list of networks, such as "127.0.0.0/8,::1/128".

    Raises:
        ValueError: an item is no network.
    """
    items = [item.strip() for item in text.split(",") if item.strip()]
    return tuple(ipaddress.ip_network(item) for item in items)


def resolve(host: str, port: int) -> list[str]:
    """Return every address of a host name."""
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(answer[4][0]) for answer in answers]


def is_allowed(text: str, allow_networks: Sequence[Network]) -> bool:
    """Whether the operator named a network that holds this address."""
    address = ipaddress.ip_address(text)
    return any(address in network for network in allow_networks)


def check_address(text: str, allow_networks: Sequence[Network]) -> str:
    """Return the address when a request may go there.

    Raises:
        EndpointError: it is neither public nor allowed. The sentence does not repeat it, for that
            would tell an outsider how names resolve inside.
    """
    address = ipaddress.ip_address(text.partition("%")[0])
    if is_allowed(str(address), allow_networks):
        return str(address)
    for candidate in (address, *_embedded(address)):
        if candidate in _METADATA or not candidate.is_global or candidate.is_multicast:
            raise EndpointError(
                Kind.BLOCKED,
                "the address is not on the public internet; only the operator can allow a private"
                " network",
            )
    return str(address)


def _embedded(address: Address) -> Iterator[Address]:
    """Yield the IPv4 addresses that an IPv6 address stands for."""
    if address.version == 4:
        return
    if address.ipv4_mapped:
        yield address.ipv4_mapped
    if address.sixtofour:
        yield address.sixtofour
    if address.teredo:
        yield from address.teredo
    if address in _NAT64 or address in _IPV4_COMPATIBLE:
        yield ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in _LOCAL_NAT64:
        yield ipaddress.IPv4Address(0)  # what it maps to is the local network's affair: refuse

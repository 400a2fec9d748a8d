//! The few rtnetlink requests that two hosts take; no `ip` program is needed.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo,
    LinkMessage,
};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;

use crate::netlink::Netlink;

/// One end of a veth pair to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct VethEnd {
    pub(super) name: &'static str,
    pub(super) index: u32,
    pub(super) mac: [u8; 6],
}

/// A conversation with the kernel about the network namespace in which it was opened.
#[derive(Debug)]
pub(super) struct Rtnetlink {
    netlink: Netlink,
}

impl Rtnetlink {
    /// Opens one about the namespace that the calling thread is in; it stays about that one.
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self { netlink: Netlink::open(NETLINK_ROUTE)? })
    }

    /// Creates a pair: `here` in this namespace, `there` in `namespace`.
    pub(super) fn create_veth(&mut self, here: VethEnd, there: VethEnd, namespace: BorrowedFd<'_>) -> io::Result<()> {
        let mut peer = link_message(there);
        peer.attributes.push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
        let mut message = link_message(here);
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Keeps the device from making itself an IPv6 address, and so from soliciting routers.
    pub(super) fn silence(&mut self, index: u32) -> io::Result<()> {
        let no_address = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes.push(LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![no_address])]));
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Sets a device up.
    pub(super) fn raise(&mut self, index: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives a device an address.
    pub(super) fn add_address(&mut self, index: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = prefix;
        message.header.index = index;
        message.attributes.push(AddressAttribute::Address(address.into()));
        message.attributes.push(AddressAttribute::Local(address.into()));
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Says for ever which device `address` belongs to, so that nobody asks in the middle of a run.
    pub(super) fn add_neighbour(&mut self, index: u32, address: Ipv4Addr, mac: [u8; 6]) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.attributes.push(NeighbourAttribute::Destination(NeighbourAddress::Inet(address)));
        message.attributes.push(NeighbourAttribute::LinkLayerAddress(mac.to_vec()));
        self.request(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sends a request and waits for the kernel's word on it.
    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.netlink.ask(message, flags).map(drop)
    }
}

fn link_message(end: VethEnd) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = end.index;
    message.attributes.push(LinkAttribute::IfName(end.name.into()));
    message.attributes.push(LinkAttribute::Address(end.mac.to_vec()));
    message
}

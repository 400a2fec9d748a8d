//! What rtnetlink tells of the device, its queueing disciplines and its neighbours.

use std::collections::BTreeSet;
use std::io;

use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkInfo, LinkMessage, LinkXdp, XdpAttached};
use netlink_packet_route::neighbour::{NeighbourMessage, NeighbourState};
use netlink_packet_route::tc::{TcAttribute, TcMessage};
use netlink_sys::protocols::NETLINK_ROUTE;

use super::super::{FactValue, HostFacts};
use crate::netlink::Netlink;

/// A fact, if the attribute is the one that tells it.
type Pick = fn(&LinkAttribute) -> Option<FactValue>;

/// Facts that are one attribute of the link each.
const ATTRIBUTES: [(&str, Pick); 9] = [
    ("nic.gro_max_bytes", |of| if let LinkAttribute::GroMaxSize(n) = of { number(*n) } else { None }),
    ("nic.gso_max_bytes", |of| if let LinkAttribute::GsoMaxSize(n) = of { number(*n) } else { None }),
    ("nic.mtu", |of| if let LinkAttribute::Mtu(n) = of { number(*n) } else { None }),
    ("nic.rx_queues", |of| if let LinkAttribute::NumRxQueues(n) = of { number(*n) } else { None }),
    ("nic.tx_queue_length", |of| if let LinkAttribute::TxQueueLen(n) = of { number(*n) } else { None }),
    ("nic.tx_queues", |of| if let LinkAttribute::NumTxQueues(n) = of { number(*n) } else { None }),
    ("nic.promiscuous", promiscuous),
    ("nic.xdp", xdp),
    ("state.nic_carrier_changes", |of| if let LinkAttribute::CarrierChanges(n) = of { number(*n) } else { None }),
];

/// Puts what is known of the device, and gives its index.
pub(super) fn read(facts: &mut HostFacts, name: Result<&str, &str>) -> Result<u32, String> {
    let asked = name.map_err(str::to_owned).and_then(|name| {
        let mut netlink = Netlink::open(NETLINK_ROUTE).map_err(|error| format!("open rtnetlink: {error}"))?;
        let link = link(&mut netlink, name).map_err(|error| format!("RTM_GETLINK: {error}"))?;
        Ok((netlink, link))
    });
    for (key, of) in ATTRIBUTES {
        let value = asked.as_ref().map_err(Clone::clone).and_then(|(_, link)| {
            link.attributes.iter().find_map(of).ok_or_else(|| "the kernel does not say".to_owned())
        });
        facts.put(key, value);
    }
    facts.put("nic.kind", asked.as_ref().map(|(_, link)| kind(link)).map_err(Clone::clone));
    let mut asked = asked.map(|(netlink, link)| (netlink, link.header.index));
    let mut ask = |doing: &str, of: fn(&mut Netlink, u32) -> io::Result<FactValue>| {
        let (netlink, index) = asked.as_mut().map_err(|reason| reason.clone())?;
        of(netlink, *index).map_err(|error| format!("{doing}: {error}"))
    };
    facts.put("nic.qdiscs", ask("RTM_GETQDISC", queueing));
    facts.put("nic.neighbours_permanent", ask("RTM_GETNEIGH", neighbours_are_permanent));
    asked.map(|(_, index)| index)
}

#[expect(clippy::unnecessary_wraps, reason = "what a row of the table returns")]
fn number(number: u32) -> Option<FactValue> {
    Some(FactValue::Integer(number.into()))
}

fn promiscuous(attribute: &LinkAttribute) -> Option<FactValue> {
    let LinkAttribute::Promiscuity(count) = attribute else { return None };
    Some(FactValue::Flag(*count > 0))
}

/// Whether a program of the kernel's express data path sees packets first.
fn xdp(attribute: &LinkAttribute) -> Option<FactValue> {
    let LinkAttribute::Xdp(xdp) = attribute else { return None };
    let attached = |xdp: &LinkXdp| matches!(xdp, LinkXdp::Attached(mode) if *mode != XdpAttached::None);
    Some(FactValue::Flag(xdp.iter().any(attached)))
}

fn link(netlink: &mut Netlink, name: &str) -> io::Result<LinkMessage> {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::IfName(name.to_owned()));
    let answers = netlink.ask(RouteNetlinkMessage::GetLink(message), 0)?;
    let link = answers.into_iter().find_map(|answer| match answer {
        RouteNetlinkMessage::NewLink(link) => Some(link),
        _ => None,
    });
    link.ok_or_else(|| io::Error::other("the kernel told of no link"))
}

/// What the device is made of, such as `veth` or `vlan`; hardware has no kind.
fn kind(link: &LinkMessage) -> FactValue {
    let infos = link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::LinkInfo(infos) => Some(infos),
        _ => None,
    });
    let kind = infos.into_iter().flatten().find_map(|info| match info {
        LinkInfo::Kind(InfoKind::Other(kind)) => Some(kind.clone()),
        LinkInfo::Kind(kind) => Some(kind.to_string()),
        _ => None,
    });
    FactValue::Text(kind.unwrap_or_else(|| "none".to_owned()))
}

/// The kinds of all queueing disciplines of the device, each once.
fn queueing(netlink: &mut Netlink, index: u32) -> io::Result<FactValue> {
    let index = i32::try_from(index).map_err(io::Error::other)?;
    let mut message = TcMessage::default();
    message.header.index = index;
    let answers = netlink.ask(RouteNetlinkMessage::GetQueueDiscipline(message), NLM_F_DUMP)?;
    let mut kinds = BTreeSet::new();
    for answer in answers {
        let RouteNetlinkMessage::NewQueueDiscipline(discipline) = answer else { continue };
        if discipline.header.index == index {
            kinds.extend(discipline.attributes.into_iter().find_map(|attribute| match attribute {
                TcAttribute::Kind(kind) => Some(kind),
                _ => None,
            }));
        }
    }
    Ok(FactValue::List(kinds.into_iter().collect()))
}

/// Whether nobody need be asked where a neighbour is: all that are known here are known for ever.
fn neighbours_are_permanent(netlink: &mut Netlink, index: u32) -> io::Result<FactValue> {
    let answers = netlink.ask(RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default()), NLM_F_DUMP)?;
    let lasting = |state: &NeighbourState| matches!(state, NeighbourState::Permanent | NeighbourState::Noarp);
    let permanent = answers.iter().all(|answer| match answer {
        RouteNetlinkMessage::NewNeighbour(neighbour) => {
            neighbour.header.ifindex != index || lasting(&neighbour.header.state)
        }
        _ => true,
    });
    Ok(FactValue::Flag(permanent))
}

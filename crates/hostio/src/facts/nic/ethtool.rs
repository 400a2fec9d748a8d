//! What the driver tells by ethtool's netlink messages, see the kernel's ethtool-netlink document. Asking needs no right, except of a module.

use std::collections::BTreeMap;
use std::io;

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLA_F_NESTED, NLA_TYPE_MASK, Nla, NlasIterator, Parseable, ParseableParametrized,
};
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::protocols::NETLINK_GENERIC;

use super::super::machine::sha256;
use super::super::{FactValue, HostFacts, parse};
use super::module;
use crate::netlink::Netlink;

/// How an attribute becomes a fact.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Flag,
    Number,
    /// A number that stands for a word; one that is not listed stands for nothing known.
    Word(&'static [(i64, &'static str)]),
    /// The names of those bits that are set.
    Names,
    /// Bytes that matter only in whether they are the same.
    Hash,
    /// Whether it is there at all.
    Present,
}

/// Attributes of a message, the key and the shape of each.
type Rows = &'static [(u16, &'static str, Shape)];

/// From `linux/ethtool_netlink.h`: the message that asks, and what its answer holds. Attribute 1 is always the header.
const MESSAGES: [(u8, &str, Rows); 10] = [
    (2, "ETHTOOL_MSG_LINKINFO_GET", &[(2, "nic.port", Shape::Word(&PORTS))]),
    (
        4,
        "ETHTOOL_MSG_LINKMODES_GET",
        &[
            (2, "nic.autonegotiation", Shape::Flag),
            (3, "nic.advertised_modes", Shape::Names),
            (5, "nic.speed_mbps", Shape::Number),
            (6, "nic.duplex", Shape::Word(&[(0, "half"), (1, "full")])),
            (9, "nic.lanes", Shape::Number),
        ],
    ),
    (
        15,
        "ETHTOOL_MSG_RINGS_GET",
        &[
            (2, "nic.ring.rx_max", Shape::Number),
            (5, "nic.ring.tx_max", Shape::Number),
            (6, "nic.ring.rx", Shape::Number),
            (7, "nic.ring.rx_mini", Shape::Number),
            (8, "nic.ring.rx_jumbo", Shape::Number),
            (9, "nic.ring.tx", Shape::Number),
            (10, "nic.ring.rx_buffer_bytes", Shape::Number),
            (12, "nic.ring.cqe_bytes", Shape::Number),
            (13, "nic.ring.tx_push", Shape::Flag),
        ],
    ),
    (
        17,
        "ETHTOOL_MSG_CHANNELS_GET",
        &[
            (2, "nic.channels.rx_max", Shape::Number),
            (3, "nic.channels.tx_max", Shape::Number),
            (5, "nic.channels.combined_max", Shape::Number),
            (6, "nic.channels.rx", Shape::Number),
            (7, "nic.channels.tx", Shape::Number),
            (8, "nic.channels.other", Shape::Number),
            (9, "nic.channels.combined", Shape::Number),
        ],
    ),
    (
        19,
        "ETHTOOL_MSG_COALESCE_GET",
        &[
            (2, "nic.coalesce.rx_usecs", Shape::Number),
            (3, "nic.coalesce.rx_max_frames", Shape::Number),
            (4, "nic.coalesce.rx_usecs_irq", Shape::Number),
            (5, "nic.coalesce.rx_max_frames_irq", Shape::Number),
            (6, "nic.coalesce.tx_usecs", Shape::Number),
            (7, "nic.coalesce.tx_max_frames", Shape::Number),
            (8, "nic.coalesce.tx_usecs_irq", Shape::Number),
            (9, "nic.coalesce.tx_max_frames_irq", Shape::Number),
            (11, "nic.coalesce.adaptive_rx", Shape::Flag),
            (12, "nic.coalesce.adaptive_tx", Shape::Flag),
            (24, "nic.coalesce.cqe_mode_tx", Shape::Flag),
            (25, "nic.coalesce.cqe_mode_rx", Shape::Flag),
        ],
    ),
    (
        21,
        "ETHTOOL_MSG_PAUSE_GET",
        &[
            (2, "nic.pause.autonegotiation", Shape::Flag),
            (3, "nic.pause.rx", Shape::Flag),
            (4, "nic.pause.tx", Shape::Flag),
        ],
    ),
    (
        23,
        "ETHTOOL_MSG_EEE_GET",
        &[
            (4, "nic.eee.active", Shape::Flag),
            (5, "nic.eee.enabled", Shape::Flag),
            (6, "nic.eee.tx_idle", Shape::Flag),
            (7, "nic.eee.tx_idle_us", Shape::Number),
        ],
    ),
    (
        25,
        "ETHTOOL_MSG_TSINFO_GET",
        &[
            (2, "nic.timestamping.modes", Shape::Names),
            (3, "nic.timestamping.tx_types", Shape::Names),
            (4, "nic.timestamping.rx_filters", Shape::Names),
            (5, "nic.timestamping.clock", Shape::Present),
        ],
    ),
    (
        29,
        "ETHTOOL_MSG_FEC_GET",
        &[
            (2, "nic.fec.modes", Shape::Names),
            (3, "nic.fec.auto", Shape::Flag),
            (4, "nic.fec.active", Shape::Word(&FEC)),
        ],
    ),
    (
        38,
        "ETHTOOL_MSG_RSS_GET",
        &[
            (3, "nic.rss.hash_function", Shape::Word(&[(1, "toeplitz"), (2, "xor"), (4, "crc32")])),
            (4, "nic.rss.indirection_sha256", Shape::Hash),
            (5, "nic.rss.key_sha256", Shape::Hash),
        ],
    ),
];
/// From linux/ethtool.h.
const PORTS: [(i64, &str); 8] = [
    (0, "twisted pair"),
    (1, "AUI"),
    (2, "MII"),
    (3, "fibre"),
    (4, "BNC"),
    (5, "direct attach"),
    (0xef, "none"),
    (0xff, "other"),
];
/// Link modes that stand for ways of error correction.
const FEC: [(i64, &str); 4] = [(49, "off"), (50, "RS"), (51, "BASER"), (74, "LLRS")];
const FEATURES_GET: u8 = 11;
const PRIVATE_FLAGS_GET: u8 = 13;
const MODULE_EEPROM_GET: u8 = 31;

pub(super) fn read(facts: &mut HostFacts, name: Result<&str, &str>) {
    let mut ethtool = name.map_err(str::to_owned).and_then(Ethtool::open);
    let mut ask = |command, doing: &str, of_module: &[(u16, Vec<u8>)]| {
        let ethtool = ethtool.as_mut().map_err(|reason| reason.clone())?;
        ethtool.get(command, of_module).map_err(|error| format!("{doing}: {error}"))
    };
    for (command, doing, rows) in MESSAGES {
        let answer = ask(command, doing, &[]);
        for (attribute, key, shape) in rows {
            let value = answer.as_ref().map_err(Clone::clone);
            facts.put(key, value.and_then(|answer| shape.read(answer.get(attribute).map(Vec::as_slice))));
        }
    }
    put_bits(facts, "nic.offload", ask(FEATURES_GET, "ETHTOOL_MSG_FEATURES_GET", &[]).map(|answer| features(&answer)));
    let flags = ask(PRIVATE_FLAGS_GET, "ETHTOOL_MSG_PRIVFLAGS_GET", &[]);
    put_bits(
        facts,
        "nic.private_flag",
        flags.map(|answer| answer.get(&2).map(|bits| bitset(bits)).unwrap_or_default()),
    );
    let mut page = |page: u8, offset: u32| {
        let number = |number: u32| number.to_ne_bytes().to_vec();
        let place = [(2, number(offset)), (3, number(128)), (4, vec![page]), (5, vec![0]), (6, vec![0x50])];
        let mut answer = ask(MODULE_EEPROM_GET, "ETHTOOL_MSG_MODULE_EEPROM_GET", &place)?;
        answer.remove(&7).ok_or_else(|| "the driver does not say".to_owned())
    };
    module::read(facts, &mut page);
}

/// One key a bit; the key of all of them is absent where they cannot be read.
fn put_bits(facts: &mut HostFacts, key: &str, bits: Result<BTreeMap<String, bool>, String>) {
    match bits {
        Ok(bits) => bits.iter().for_each(|(name, set)| {
            facts.put(&format!("{key}.{}", parse::key_part(name)), Ok(FactValue::Flag(*set)));
        }),
        Err(reason) => facts.put(key, Err(reason)),
    }
}

/// Every feature that the kernel knows, and whether it is active.
fn features(answer: &Attributes) -> BTreeMap<String, bool> {
    let bits = |attribute: u16| answer.get(&attribute).map(|bits| bitset(bits)).unwrap_or_default();
    // The first lists all names that there are, with what the device could change; the second those that are active.
    let (changeable, active) = (bits(2), bits(4));
    changeable.into_keys().map(|name| (name.clone(), active.contains_key(&name))).chain(active.clone()).collect()
}

impl Shape {
    fn read(self, value: Option<&[u8]>) -> Result<FactValue, String> {
        let silent = || "the driver does not say".to_owned();
        if let Self::Present = self {
            return Ok(FactValue::Flag(value.is_some()));
        }
        let value = value.ok_or_else(silent)?;
        match self {
            Self::Flag => number(value).map(|number| FactValue::Flag(number != 0)),
            // All bits set is how ethtool writes that it does not know a speed.
            Self::Number => number(value).filter(|&number| number != i64::from(u32::MAX)).map(FactValue::Integer),
            Self::Word(words) => {
                let number = number(value).ok_or_else(silent)?;
                words.iter().find(|(code, _)| *code == number).map(|(_, word)| FactValue::Text((*word).to_owned()))
            }
            Self::Names => {
                let set = bitset(value).into_iter().filter(|(_, set)| *set);
                Some(FactValue::List(set.map(|(name, _)| name).collect()))
            }
            Self::Hash => Some(FactValue::Text(sha256(value))),
            Self::Present => None,
        }
        .ok_or_else(silent)
    }
}

/// An unsigned number of any of netlink's sizes.
fn number(value: &[u8]) -> Option<i64> {
    match *value {
        [byte] => Some(byte.into()),
        [a, b, c, d] => Some(u32::from_ne_bytes([a, b, c, d]).into()),
        _ => None,
    }
}

/// A bit set in its long form: the names of the bits that it tells of, and whether each is set. A set without a mask lists only those.
fn bitset(value: &[u8]) -> BTreeMap<String, bool> {
    const NO_MASK: u16 = 1;
    const BITS: u16 = 3;
    const NAME: u16 = 2;
    const VALUE: u16 = 3;
    let set = attributes(value);
    let no_mask = set.iter().any(|(kind, _)| *kind == NO_MASK);
    let bits = set.iter().find(|(kind, _)| *kind == BITS).map(|(_, bits)| attributes(bits)).unwrap_or_default();
    let bit = |(_, bit): &(u16, Vec<u8>)| {
        let fields = attributes(bit);
        let (_, name) = fields.iter().find(|(kind, _)| *kind == NAME)?;
        // A bit that has lost its meaning has lost its name.
        let name = Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned()).filter(|n| !n.is_empty())?;
        Some((name, no_mask || fields.iter().any(|(kind, _)| *kind == VALUE)))
    };
    bits.iter().filter_map(bit).collect()
}

/// The attributes that stand side by side in `bytes`, as far as they can be read.
fn attributes(bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    NlasIterator::new(bytes).map_while(Result::ok).map(|nla| (nla.kind(), nla.value().to_vec())).collect()
}

/// The attributes of an answer, by their numbers.
type Attributes = BTreeMap<u16, Vec<u8>>;

/// ethtool, asked about one device.
#[derive(Debug)]
struct Ethtool {
    netlink: Netlink,
    family: u16,
    device: String,
}

impl Ethtool {
    fn open(device: &str) -> Result<Self, String> {
        let failed = |error: io::Error| format!("ethtool by netlink: {error}");
        let mut netlink = Netlink::open(NETLINK_GENERIC).map_err(failed)?;
        let question = GenlCtrl {
            cmd: GenlCtrlCmd::GetFamily,
            nlas: vec![GenlCtrlAttrs::FamilyName(Question::family_name().to_owned())],
        };
        let answers = netlink.ask(GenlMessage::from_payload(question), 0).map_err(failed)?;
        let family = answers.iter().flat_map(|answer| &answer.payload.nlas).find_map(|attribute| match attribute {
            GenlCtrlAttrs::FamilyId(family) => Some(*family),
            _ => None,
        });
        let family = family.ok_or_else(|| "ethtool by netlink: the kernel does not know it".to_owned())?;
        Ok(Self { netlink, family, device: device.to_owned() })
    }

    fn get(&mut self, command: u8, more: &[(u16, Vec<u8>)]) -> io::Result<Attributes> {
        const HEADER: u16 = 1;
        const DEVICE_NAME: u16 = 2;
        let name = DefaultNla::new(DEVICE_NAME, [self.device.as_bytes(), &[0]].concat());
        let mut header = vec![0; name.buffer_len()];
        name.emit(&mut header);
        let mut attributes = vec![DefaultNla::new(HEADER | NLA_F_NESTED, header)];
        attributes.extend(more.iter().map(|(kind, value)| DefaultNla::new(*kind, value.clone())));
        let mut message = GenlMessage::from_payload(Question { command, attributes });
        message.set_resolved_family_id(self.family);
        let answers = self.netlink.ask(message, 0)?;
        let answer = answers.into_iter().next().ok_or_else(|| io::Error::other("the kernel said nothing"))?;
        Ok(answer.payload.attributes.iter().map(|nla| (nla.kind() & NLA_TYPE_MASK, value_of(nla))).collect())
    }
}

fn value_of(nla: &DefaultNla) -> Vec<u8> {
    let mut value = vec![0; nla.value_len()];
    nla.emit_value(&mut value);
    value
}

/// A message of ethtool, a question or an answer.
#[derive(Debug)]
struct Question {
    command: u8,
    attributes: Vec<DefaultNla>,
}

impl GenlFamily for Question {
    fn family_name() -> &'static str {
        "ethtool"
    }

    fn command(&self) -> u8 {
        self.command
    }

    fn version(&self) -> u8 {
        1
    }
}

impl Emitable for Question {
    fn buffer_len(&self) -> usize {
        self.attributes.as_slice().buffer_len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        self.attributes.as_slice().emit(buffer);
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Question {
    fn parse_with_param(bytes: &[u8], header: GenlHeader) -> Result<Self, DecodeError> {
        let attributes = NlasIterator::new(bytes).map(|nla| DefaultNla::parse(&nla?)).collect::<Result<_, _>>()?;
        Ok(Self { command: header.cmd, attributes })
    }
}

//! The control messages, which set up, watch and end a session over TCP.
//!
//! A message is a frame: magic `tpct`, kind (2 bytes), two bytes of zero, length of the body (4 bytes), body; little-endian. A kind has a
//! limit for its body, and so has whoever reads it; both are checked before the body is read. A message that is not understood ends the
//! connection.
//!
//! Once both sides have proven the key, each frame is followed by its seal: the first sixteen bytes of an HMAC-SHA-256, under a key that is
//! the session's and the direction's own, over the number of the frame in its direction (8 bytes, from zero) and the frame. A frame that was
//! changed, repeated, left out, reordered or sent back to whom it came from has a wrong seal, and ends the connection.
//!
//! ```text
//! pinger                                    reflector
//!   Hello { versions, nonce }      ───►
//!                                  ◄───     Welcome { version, nonce } | Busy { seconds } | Incompatible | Refused
//!   Authenticate { mac }           ───►
//!                                  ◄───     Authenticated { mac } | Busy | Refused
//!                                           (all that follows is sealed)
//!                                  ◄───     Offer { host of the data, api }
//!   Open { data address, plan }    ───►
//!                                  ◄───     Opened { data port } | Refused
//!                                           (path probes travel over UDP)
//!   Start                          ───►     (messages travel over UDP)
//!   Alive                          ───►
//!                                  ◄───     Pulse { resources }    every interval
//!   Finish                         ───►
//!                                  ◄───     Report { what the reflector saw }
//! ```
//!
//! `Hello`, `Busy`, `Incompatible` and `Refused` keep their layout in every version, so that any two versions can at least tell each other
//! why they cannot talk.

mod pulse;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

use crate::cursor::{Reader, Writer};

pub use pulse::Pulse;

/// The version of the control protocol that this program speaks.
pub const PROTOCOL: u16 = 1;
/// The oldest version that it still speaks.
pub const OLDEST_PROTOCOL: u16 = 1;
/// Bytes in front of a body.
pub const FRAME_HEADER_LEN: usize = 12;
/// Bytes of a seal, behind each frame of a session.
pub const SEAL_LEN: usize = 16;
/// The longest body but a report's, in bytes.
pub const MAX_BODY: usize = 1_024;
/// The longest body of a report, in bytes.
pub const MAX_REPORT: usize = 1 << 20;

const MAGIC: [u8; 4] = *b"tpct";

/// Sixteen random bytes that make a session's proofs its own.
pub type Nonce = [u8; 16];
/// HMAC-SHA-256 of what a side proves.
pub type Mac = [u8; 32];

/// A control message; text and reports are borrowed from the frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Message<'a> {
    /// A pinger introduces itself.
    Hello {
        /// The newest protocol version it speaks.
        newest: u16,
        /// The oldest.
        oldest: u16,
        /// Its nonce.
        nonce: Nonce,
        /// Its version of tickpong.
        version: &'a str,
    },
    /// The reflector agrees to talk.
    Welcome {
        /// The protocol version to speak from here on.
        protocol: u16,
        /// Its nonce.
        nonce: Nonce,
        /// Whether it holds a key; the proofs are made with an empty one otherwise.
        keyed: bool,
        /// Its version of tickpong.
        version: &'a str,
    },
    /// Another session is on.
    Busy {
        /// Until that session is over, by its plan.
        seconds_left: u32,
    },
    /// No protocol version is spoken by both.
    Incompatible {
        /// The newest that the sender of this speaks.
        newest: u16,
        /// The oldest.
        oldest: u16,
        /// Its version of tickpong.
        version: &'a str,
    },
    /// The pinger proves that it holds the key.
    Authenticate {
        /// Over both nonces.
        mac: Mac,
    },
    /// The reflector proves the same.
    Authenticated {
        /// Over both nonces.
        mac: Mac,
    },
    /// Where data is to go, so that the pinger can choose where it sends from.
    Offer {
        /// The reflector's data address, or the multicast group it hears. Unspecified: the one this connection goes to.
        host: IpAddr,
        /// How the reflector waits for datagrams: its `--api`.
        api: &'a str,
    },
    /// What the pinger is about to do.
    Open {
        /// Where it sends from and wants the answers. An unspecified address: the one this connection comes from.
        data: SocketAddr,
        /// How long the whole session will take, by plan.
        planned_ns: u64,
        /// The receive deadline.
        deadline_ns: u64,
        /// The interval of the plan, which is the reflector's for its resources too.
        interval_ns: u64,
    },
    /// The reflector hears and answers the pinger.
    Opened {
        /// The port of its data address.
        port: u16,
    },
    /// The run begins: from here on the reflector's pulses are timed, and its socket's drops and its host's UDP are counted.
    Start,
    /// The pinger lives.
    Alive,
    /// The reflector lives, and has used this so far.
    Pulse(Pulse),
    /// The run is over: nothing more will be sent.
    Finish,
    /// What the reflector saw, as JSON.
    Report {
        /// The text.
        json: &'a [u8],
    },
    /// No, and why.
    Refused {
        /// For a person.
        reason: &'a str,
    },
}

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum BadMessage {
    /// The frame does not begin with the magic: another program is at the other end.
    #[error("the other end does not speak tickpong's control protocol")]
    Foreign,
    /// A kind that this version does not know.
    #[error("a control message of unknown kind {0}")]
    UnknownKind(u16),
    /// The body says it is longer than its kind may be, or does not fit the buffer.
    #[error("a control message longer than its kind may be")]
    TooLong,
    /// The body ends before its fields do.
    #[error("a control message shorter than its kind is")]
    TooShort,
    /// Not UTF-8 where text should be.
    #[error("a control message whose text is not UTF-8")]
    Text,
    /// A field holds what it may not.
    #[error("a control message with an impossible field")]
    Field,
    /// Its seal is not the one it should have.
    #[error(
        "a control message with a wrong seal: somebody or something between the hosts changed, repeated or left out what they say"
    )]
    Seal,
}

/// The front of a frame: what follows, and how much of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FrameHeader {
    kind: u16,
    /// Bytes of the body, within its kind's limit.
    pub body_len: usize,
}

impl FrameHeader {
    /// Looks whether a frame may begin with these bytes, however few.
    ///
    /// # Errors
    ///
    /// [`BadMessage::Foreign`] when none does.
    pub fn begin(bytes: &[u8]) -> Result<(), BadMessage> {
        if bytes.iter().zip(&MAGIC).all(|(byte, magic)| byte == magic) { Ok(()) } else { Err(BadMessage::Foreign) }
    }

    /// Reads the front of a frame whose body may have `most` bytes, if its kind allows so many.
    ///
    /// # Errors
    ///
    /// When it is not a frame, of an unknown kind, or longer than it may be.
    pub fn parse(header: &[u8; FRAME_HEADER_LEN], most: usize) -> Result<Self, BadMessage> {
        let mut reader = Reader(header);
        if reader.array()? != MAGIC {
            return Err(BadMessage::Foreign);
        }
        let kind = reader.u16()?;
        let _reserved = reader.u16()?;
        let body_len = usize::try_from(reader.u32()?).map_err(|_| BadMessage::TooLong)?;
        let limit = match kind {
            kind::REPORT => MAX_REPORT,
            kind::HELLO..kind::REPORT | kind::REFUSED => MAX_BODY,
            _ => return Err(BadMessage::UnknownKind(kind)),
        };
        if body_len > limit.min(most) { Err(BadMessage::TooLong) } else { Ok(Self { kind, body_len }) }
    }
}

/// Numbers of the kinds.
mod kind {
    pub(super) const HELLO: u16 = 1;
    pub(super) const WELCOME: u16 = 2;
    pub(super) const BUSY: u16 = 3;
    pub(super) const INCOMPATIBLE: u16 = 4;
    pub(super) const AUTHENTICATE: u16 = 5;
    pub(super) const AUTHENTICATED: u16 = 6;
    pub(super) const OFFER: u16 = 7;
    pub(super) const OPEN: u16 = 8;
    pub(super) const OPENED: u16 = 9;
    pub(super) const START: u16 = 10;
    pub(super) const ALIVE: u16 = 11;
    pub(super) const PULSE: u16 = 12;
    pub(super) const FINISH: u16 = 13;
    pub(super) const REPORT: u16 = 14;
    pub(super) const REFUSED: u16 = 15;
}

impl<'a> Message<'a> {
    /// Writes the whole frame into `buffer`, and says how long it is.
    ///
    /// # Errors
    ///
    /// [`BadMessage::TooLong`] when it does not fit, or is longer than its kind may be.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, BadMessage> {
        let (front, body) = buffer.split_first_chunk_mut::<FRAME_HEADER_LEN>().ok_or(BadMessage::TooLong)?;
        let mut writer = Writer::new(body);
        let kind = self.emit_body(&mut writer)?;
        let body_len = writer.written();
        front[..4].copy_from_slice(&MAGIC);
        front[4..6].copy_from_slice(&kind.to_le_bytes());
        front[6..8].fill(0);
        front[8..].copy_from_slice(&u32::try_from(body_len).map_err(|_| BadMessage::TooLong)?.to_le_bytes());
        FrameHeader::parse(front, MAX_REPORT).map(|_| FRAME_HEADER_LEN + body_len)
    }

    fn emit_body(&self, writer: &mut Writer<'_>) -> Result<u16, BadMessage> {
        match *self {
            Self::Hello { newest, oldest, nonce, version } => {
                writer.put(&newest.to_le_bytes())?;
                writer.put(&oldest.to_le_bytes())?;
                writer.put(&nonce)?;
                writer.put(version.as_bytes())?;
                Ok(kind::HELLO)
            }
            Self::Welcome { protocol, nonce, keyed, version } => {
                writer.put(&protocol.to_le_bytes())?;
                writer.put(&nonce)?;
                writer.put(&[u8::from(keyed)])?;
                writer.put(version.as_bytes())?;
                Ok(kind::WELCOME)
            }
            Self::Busy { seconds_left } => writer.put(&seconds_left.to_le_bytes()).map(|()| kind::BUSY),
            Self::Incompatible { newest, oldest, version } => {
                writer.put(&newest.to_le_bytes())?;
                writer.put(&oldest.to_le_bytes())?;
                writer.put(version.as_bytes())?;
                Ok(kind::INCOMPATIBLE)
            }
            Self::Authenticate { mac } => writer.put(&mac).map(|()| kind::AUTHENTICATE),
            Self::Authenticated { mac } => writer.put(&mac).map(|()| kind::AUTHENTICATED),
            Self::Offer { host, api } => {
                put_host(writer, host)?;
                writer.put(api.as_bytes())?;
                Ok(kind::OFFER)
            }
            Self::Open { data, planned_ns, deadline_ns, interval_ns } => {
                put_host(writer, data.ip())?;
                writer.put(&data.port().to_le_bytes())?;
                [planned_ns, deadline_ns, interval_ns].iter().try_for_each(|ns| writer.put(&ns.to_le_bytes()))?;
                Ok(kind::OPEN)
            }
            Self::Opened { port } => writer.put(&port.to_le_bytes()).map(|()| kind::OPENED),
            Self::Start => Ok(kind::START),
            Self::Alive => Ok(kind::ALIVE),
            Self::Pulse(pulse) => {
                pulse.fields().iter().try_for_each(|field| writer.put(&field.to_le_bytes()))?;
                Ok(kind::PULSE)
            }
            Self::Finish => Ok(kind::FINISH),
            Self::Report { json } => writer.put(json).map(|()| kind::REPORT),
            Self::Refused { reason } => writer.put(reason.as_bytes()).map(|()| kind::REFUSED),
        }
    }

    /// Reads the body of a frame.
    ///
    /// # Errors
    ///
    /// When the body is not what its kind says.
    pub fn parse(header: FrameHeader, body: &'a [u8]) -> Result<Self, BadMessage> {
        let reader = &mut Reader(body);
        let message = match header.kind {
            kind::HELLO => {
                let (newest, oldest, nonce) = (reader.u16()?, reader.u16()?, reader.array()?);
                Self::Hello { newest, oldest, nonce, version: reader.text()? }
            }
            kind::WELCOME => {
                let (protocol, nonce, keyed) = (reader.u16()?, reader.array()?, reader.flag()?);
                Self::Welcome { protocol, nonce, keyed, version: reader.text()? }
            }
            kind::BUSY => Self::Busy { seconds_left: reader.u32()? },
            kind::INCOMPATIBLE => {
                let (newest, oldest) = (reader.u16()?, reader.u16()?);
                Self::Incompatible { newest, oldest, version: reader.text()? }
            }
            kind::AUTHENTICATE => Self::Authenticate { mac: reader.array()? },
            kind::AUTHENTICATED => Self::Authenticated { mac: reader.array()? },
            kind::OFFER => Self::Offer { host: host(reader)?, api: reader.text()? },
            kind::OPEN => Self::Open {
                data: SocketAddr::new(host(reader)?, reader.u16()?),
                planned_ns: reader.u64()?,
                deadline_ns: reader.u64()?,
                interval_ns: reader.u64()?,
            },
            kind::OPENED => Self::Opened { port: reader.u16()? },
            kind::START => Self::Start,
            kind::ALIVE => Self::Alive,
            kind::PULSE => Self::Pulse(Pulse::parse(reader)?),
            kind::FINISH => Self::Finish,
            kind::REPORT => Self::Report { json: std::mem::take(&mut reader.0) },
            kind::REFUSED => Self::Refused { reason: reader.text()? },
            unknown => return Err(BadMessage::UnknownKind(unknown)),
        };
        reader.end().map(|()| message)
    }
}

/// Family, sixteen bytes of address. Scopes mean nothing on another host and stay here.
fn put_host(writer: &mut Writer<'_>, host: IpAddr) -> Result<(), BadMessage> {
    let mut bytes = [0; 16];
    match host {
        IpAddr::V4(v4) => bytes[..4].copy_from_slice(&v4.octets()),
        IpAddr::V6(v6) => bytes = v6.octets(),
    }
    writer.put(&[u8::from(host.is_ipv6())])?;
    writer.put(&bytes)
}

fn host(reader: &mut Reader<'_>) -> Result<IpAddr, BadMessage> {
    let (v6, bytes) = (reader.flag()?, reader.array::<16>()?);
    if v6 {
        return Ok(Ipv6Addr::from(bytes).into());
    }
    let [a, b, c, d, rest @ ..] = bytes;
    if rest == [0; 12] { Ok(Ipv4Addr::new(a, b, c, d).into()) } else { Err(BadMessage::Field) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(frame: &[u8]) -> Result<Message<'_>, BadMessage> {
        let (front, body) = frame.split_first_chunk().ok_or(BadMessage::TooShort)?;
        let header = FrameHeader::parse(front, MAX_REPORT)?;
        Message::parse(header, body.get(..header.body_len).ok_or(BadMessage::TooShort)?)
    }

    fn every_message() -> Vec<Message<'static>> {
        vec![
            Message::Hello { newest: 3, oldest: 1, nonce: [1; 16], version: "0.1.0" },
            Message::Welcome { protocol: 1, nonce: [2; 16], keyed: true, version: "0.1.0" },
            Message::Busy { seconds_left: 17 },
            Message::Incompatible { newest: 9, oldest: 8, version: "9.0.0" },
            Message::Authenticate { mac: [3; 32] },
            Message::Authenticated { mac: [4; 32] },
            Message::Offer { host: "fe80::1".parse().unwrap(), api: "udp-spin" },
            Message::Open { data: "10.0.0.1:5".parse().unwrap(), planned_ns: 1, deadline_ns: 2, interval_ns: 3 },
            Message::Opened { port: 7_411 },
            Message::Start,
            Message::Alive,
            Message::Pulse(Pulse { interval: 1, cpu_ns: 2, user_ns: 3, peak_bytes: 4, ..Pulse::default() }),
            Message::Finish,
            Message::Report { json: b"{}" },
            Message::Refused { reason: "the key is another" },
        ]
    }

    #[test]
    fn every_message_reads_back_and_no_shorter_frame_does() {
        let mut buffer = [0; 2_048];
        for message in every_message() {
            let length = message.emit(&mut buffer).unwrap();
            assert_eq!(read(&buffer[..length]), Ok(message));
            for cut in 0..length {
                assert!(read(&buffer[..cut]).is_err(), "{message:?} cut to {cut}");
            }
        }
    }

    #[test]
    fn limits_are_checked_before_the_body_is_read() {
        let mut buffer = vec![0; FRAME_HEADER_LEN + MAX_REPORT + 1];
        let long = "x".repeat(MAX_BODY + 1);
        assert_eq!(Message::Refused { reason: &long }.emit(&mut buffer), Err(BadMessage::TooLong));
        let body = vec![b' '; MAX_REPORT];
        assert_eq!(Message::Report { json: &body }.emit(&mut buffer), Ok(FRAME_HEADER_LEN + MAX_REPORT));
        let report = buffer.first_chunk().unwrap();
        assert!(FrameHeader::parse(report, MAX_REPORT).is_ok());
        assert_eq!(FrameHeader::parse(report, MAX_BODY), Err(BadMessage::TooLong), "more than its reader wants");
        assert_eq!(Message::Start.emit(&mut buffer[..11]), Err(BadMessage::TooLong));
        let mut front = *b"tpct\x01\x00\x00\x00\xff\xff\xff\xff";
        assert_eq!(FrameHeader::parse(&front, MAX_REPORT), Err(BadMessage::TooLong));
        front[4] = 200;
        assert_eq!(FrameHeader::parse(&front, MAX_REPORT), Err(BadMessage::UnknownKind(200)));
        assert_eq!(FrameHeader::parse(b"GET / HTTP/1", MAX_REPORT), Err(BadMessage::Foreign));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(kind in 0_u16..20, body in prop::collection::vec(any::<u8>(), 0..1_100)) {
            let mut frame = b"tpct".to_vec();
            frame.extend(kind.to_le_bytes());
            frame.extend([0, 0]);
            frame.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
            frame.extend(&body);
            let _ = read(&frame);
        }
    }
}

//! The datagram: fifty-six bytes of header, little-endian, then filler up to the size of the plan.
//!
//! | bytes | field |
//! |---|---|
//! | 0–3 | magic `tpng` |
//! | 4 | version of this layout, 1 |
//! | 5 | kind: 0 ping, 1 pong, 2 path probe, 3 path answer |
//! | 6–7 | length of the whole payload: a truncated datagram betrays itself |
//! | 8–15 | token of the session |
//! | 16–23 | sequence number |
//! | 24–31 | intended send instant, pinger's clock, ns |
//! | 32–39 | actual send instant, pinger's clock, ns |
//! | 40–47 | arrival, reflector's clock, ns; zero in a ping |
//! | 48–55 | departure, reflector's clock, ns; zero in a ping |
//!
//! The stamps travel with the message, so that neither side keeps a table of messages under way.

use thiserror::Error;
use tickpong_units::{Instant, PayloadLen, PingerClock, ReflectorClock, Seq};

use crate::cursor::{u16_at, u64_at};

/// Bytes of the header.
pub const HEADER_LEN: usize = PayloadLen::MIN.get();
/// The version of the layout above.
pub const VERSION: u8 = 1;

const MAGIC: [u8; 4] = *b"tpng";

/// Offsets of the fields.
mod field {
    pub(super) const KIND: usize = 5;
    pub(super) const LENGTH: usize = 6;
    pub(super) const TOKEN: usize = 8;
    pub(super) const SEQ: usize = 16;
    pub(super) const INTENDED: usize = 24;
    pub(super) const SENT: usize = 32;
    pub(super) const ARRIVAL: usize = 40;
    pub(super) const DEPARTURE: usize = 48;
}

/// What ties a datagram to its session; derived from the key and both nonces, never sent before both sides have proven themselves.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Token(u64);

impl Token {
    /// The token of these eight bytes.
    pub const fn new(bytes: [u8; 8]) -> Self {
        Self(u64::from_le_bytes(bytes))
    }
}

impl std::fmt::Debug for Token {
    /// Without the value: who holds it may speak in the session.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// What a datagram is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Kind {
    /// On its way out; counted.
    Ping = 0,
    /// On its way back; counted.
    Pong = 1,
    /// Asks before the run whether anything arrives at all; not counted.
    PathProbe = 2,
    /// The answer to a path probe; not counted.
    PathAnswer = 3,
}

/// The header of a datagram, as a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Datagram {
    /// What it is for.
    pub kind: Kind,
    /// The session it belongs to.
    pub token: Token,
    /// Which message it is.
    pub seq: Seq,
    /// When the plan wanted it sent.
    pub intended: Instant<PingerClock>,
    /// When it was sent: the clock just before the send call.
    pub sent: Instant<PingerClock>,
    /// When the reflector received it; the clock's origin in a ping.
    pub arrival: Instant<ReflectorClock>,
    /// When the reflector sent it back: the clock just before the send call; the clock's origin in a ping.
    pub departure: Instant<ReflectorClock>,
}

/// Why bytes are not a datagram of ours.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum Malformed {
    /// Shorter than the header.
    #[error("shorter than the header")]
    TooShort,
    /// Another program's.
    #[error("not of tickpong")]
    Foreign,
    /// Of a version that this program does not speak.
    #[error("of layout version {0}, not {VERSION}")]
    Version(u8),
    /// No such kind.
    #[error("of no known kind")]
    Kind,
    /// Cut short or padded on the way.
    #[error("of another length than it says")]
    Length,
}

impl Datagram {
    /// Writes the header at the front of `payload`, whose length it states. The filler behind it is left as it is.
    ///
    /// # Panics
    ///
    /// When `payload` is shorter than the header or longer than a datagram can be; the callers' sizes are [`PayloadLen`]s.
    #[inline]
    pub fn emit(&self, payload: &mut [u8]) {
        let length = u16::try_from(payload.len()).expect("a payload fits a datagram");
        let header: &mut [u8; HEADER_LEN] = payload.first_chunk_mut().expect("a payload holds the header");
        header[..4].copy_from_slice(&MAGIC);
        header[4] = VERSION;
        header[field::KIND] = self.kind as u8;
        header[field::LENGTH..field::TOKEN].copy_from_slice(&length.to_le_bytes());
        header[field::TOKEN..field::SEQ].copy_from_slice(&self.token.0.to_le_bytes());
        header[field::SEQ..field::INTENDED].copy_from_slice(&self.seq.get().to_le_bytes());
        header[field::INTENDED..field::SENT].copy_from_slice(&self.intended.to_wire().to_le_bytes());
        header[field::SENT..field::ARRIVAL].copy_from_slice(&self.sent.to_wire().to_le_bytes());
        header[field::ARRIVAL..field::DEPARTURE].copy_from_slice(&self.arrival.to_wire().to_le_bytes());
        header[field::DEPARTURE..].copy_from_slice(&self.departure.to_wire().to_le_bytes());
    }

    /// Reads the header at the front of `payload`, whose whole length must be what the header states.
    ///
    /// # Errors
    ///
    /// When the bytes are anything but a whole datagram of this layout.
    #[inline]
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let header: &[u8; HEADER_LEN] = payload.first_chunk().ok_or(Malformed::TooShort)?;
        if header[..4] != MAGIC {
            return Err(Malformed::Foreign);
        }
        if header[4] != VERSION {
            return Err(Malformed::Version(header[4]));
        }
        let kind = match header[field::KIND] {
            0 => Kind::Ping,
            1 => Kind::Pong,
            2 => Kind::PathProbe,
            3 => Kind::PathAnswer,
            _ => return Err(Malformed::Kind),
        };
        if usize::from(u16_at(header, field::LENGTH)) != payload.len() {
            return Err(Malformed::Length);
        }
        Ok(Self {
            kind,
            token: Token(u64_at(header, field::TOKEN)),
            seq: Seq::new(u64_at(header, field::SEQ)),
            intended: Instant::from_clock(u64_at(header, field::INTENDED)),
            sent: Instant::from_clock(u64_at(header, field::SENT)),
            arrival: Instant::from_clock(u64_at(header, field::ARRIVAL)),
            departure: Instant::from_clock(u64_at(header, field::DEPARTURE)),
        })
    }
}

/// Turns a ping, or a path probe, into its answer where it lies. The caller has parsed it, and says with [`depart`] when it goes.
///
/// # Panics
///
/// When `payload` is shorter than the header.
#[inline]
pub fn answer(arrival: Instant<ReflectorClock>, payload: &mut [u8]) {
    let header: &mut [u8; HEADER_LEN] = payload.first_chunk_mut().expect("a parsed payload holds the header");
    header[field::KIND] |= 1;
    header[field::ARRIVAL..field::DEPARTURE].copy_from_slice(&arrival.to_wire().to_le_bytes());
}

/// Stamps an answer with the instant of its departure: the last thing before the send call, so that the turnaround holds all that a
/// reflector adds.
///
/// # Panics
///
/// When `payload` is shorter than the header.
#[inline]
pub fn depart(departure: Instant<ReflectorClock>, payload: &mut [u8]) {
    let header: &mut [u8; HEADER_LEN] = payload.first_chunk_mut().expect("an answer holds the header");
    header[field::DEPARTURE..].copy_from_slice(&departure.to_wire().to_le_bytes());
}

/// Writes the session's filler behind the header: it depends on position and token alone, so that the pinger can tell whether what came
/// back is what it sent.
pub fn fill(payload: &mut [u8], token: Token) {
    let mut state = token.0 | 1;
    for byte in payload.iter_mut().skip(HEADER_LEN) {
        // Marsaglia's xorshift (2003): any sequence without runs will do.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *byte = state.to_le_bytes()[3];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ping() -> Datagram {
        Datagram {
            kind: Kind::Ping,
            token: Token::new([7; 8]),
            seq: Seq::new(u64::MAX - 1),
            intended: Instant::from_clock(11),
            sent: Instant::from_clock(12),
            arrival: Instant::from_clock(0),
            departure: Instant::from_clock(0),
        }
    }

    #[test]
    fn an_answer_is_the_ping_with_the_reflectors_stamps() {
        let mut bytes = [0; 264];
        fill(&mut bytes, ping().token);
        ping().emit(&mut bytes);
        assert_eq!(Datagram::parse(&bytes), Ok(ping()));
        let before = bytes;
        answer(Instant::from_clock(3), &mut bytes);
        depart(Instant::from_clock(4), &mut bytes);
        let pong =
            Datagram { kind: Kind::Pong, arrival: Instant::from_clock(3), departure: Instant::from_clock(4), ..ping() };
        assert_eq!(Datagram::parse(&bytes), Ok(pong));
        assert_eq!(bytes[HEADER_LEN..], before[HEADER_LEN..]);
    }

    #[test]
    fn what_is_not_ours_is_named() {
        let mut bytes = [0; 100];
        ping().emit(&mut bytes);
        assert_eq!(Datagram::parse(&bytes[..55]), Err(Malformed::TooShort));
        assert_eq!(Datagram::parse(&bytes[..99]), Err(Malformed::Length));
        let with = |at: usize, byte: u8| {
            let mut changed = bytes;
            changed[at] = byte;
            Datagram::parse(&changed)
        };
        assert_eq!(with(0, 0), Err(Malformed::Foreign));
        assert_eq!(with(4, 9), Err(Malformed::Version(9)));
        assert_eq!(with(5, 4), Err(Malformed::Kind));
    }

    #[test]
    fn the_layout_is_the_one_written_down() {
        let mut bytes = [0xff; 60];
        ping().emit(&mut bytes);
        assert_eq!(&bytes[..8], b"tpng\x01\x00\x3c\x00");
        assert_eq!(bytes[8..16], [7; 8]);
        assert_eq!(bytes[16..24], (u64::MAX - 1).to_le_bytes());
        assert_eq!(bytes[24..40], [[11, 0, 0, 0, 0, 0, 0, 0], [12, 0, 0, 0, 0, 0, 0, 0]].concat());
        assert_eq!(bytes[56..], [0xff; 4], "the filler is not the header's");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
            let _ = Datagram::parse(&bytes);
        }

        #[test]
        fn a_header_of_ours_with_any_change_is_read_or_refused(at in 0_usize..64, byte: u8, cut in 0_usize..=64) {
            let mut bytes = [0; 64];
            ping().emit(&mut bytes);
            bytes[at] = byte;
            if let Ok(read) = Datagram::parse(&bytes[..cut]) {
                let mut again = bytes;
                read.emit(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}

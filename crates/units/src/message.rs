//! Which message, and how large.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A message's number in its run, from zero; it never wraps.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Seq(u64);

impl Seq {
    /// Message number `k`.
    pub const fn new(k: u64) -> Self {
        Self(k)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The message after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Bytes of UDP payload in a message: at least tickpong's own header, at most what one datagram carries.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct PayloadLen(u16);

impl PayloadLen {
    /// The most that one IPv4 datagram carries: 65,535 less the IP and UDP headers.
    pub const MAX: Self = Self(65_507);
    /// tickpong's own header, which every message holds.
    pub const MIN: Self = Self(56);
    /// The size that the published benchmarks of this kind stand on.
    pub const STANDARD: Self = Self(264);

    /// So many bytes.
    ///
    /// # Errors
    ///
    /// When the header does not fit, or one datagram does not carry as much.
    pub const fn new(bytes: u64) -> Result<Self, PayloadLenError> {
        match bytes {
            #[expect(clippy::cast_possible_truncation, reason = "the arm's own bound")]
            56..=65_507 => Ok(Self(bytes as u16)),
            0..56 => Err(PayloadLenError::BelowHeader(bytes)),
            _ => Err(PayloadLenError::AboveDatagram(bytes)),
        }
    }

    /// The number of bytes.
    pub const fn get(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PayloadLen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a size is none.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum PayloadLenError {
    /// Stamps and token would not fit.
    #[error("use a message of {0} bytes: the header alone is 56; want 56 to 65507")]
    BelowHeader(u64),
    /// UDP over IPv4 carries no more.
    #[error("use a message of {0} bytes: one datagram carries at most 65507; want 56 to 65507")]
    AboveDatagram(u64),
    /// Not a number of bytes.
    #[error("read `{0}` as a size: want whole bytes, such as 264")]
    Malformed(String),
}

impl FromStr for PayloadLen {
    type Err = PayloadLenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = match text.trim().strip_suffix('k') {
            Some(kilo) => kilo.parse().ok().and_then(|k: u64| k.checked_mul(1_000)),
            None => text.trim().parse().ok(),
        };
        bytes.ok_or_else(|| PayloadLenError::Malformed(text.to_owned())).and_then(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_hold_the_header_and_fit_a_datagram() {
        assert_eq!("264".parse(), Ok(PayloadLen::STANDARD));
        assert_eq!("1k".parse(), PayloadLen::new(1_000));
        assert_eq!(PayloadLen::new(56), Ok(PayloadLen::MIN));
        assert_eq!(PayloadLen::new(65_507), Ok(PayloadLen::MAX));
        assert_eq!("55".parse::<PayloadLen>(), Err(PayloadLenError::BelowHeader(55)));
        assert_eq!("65508".parse::<PayloadLen>(), Err(PayloadLenError::AboveDatagram(65_508)));
        assert_eq!("big".parse::<PayloadLen>(), Err(PayloadLenError::Malformed("big".into())));
    }
}

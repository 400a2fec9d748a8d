//! Where chance comes from.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The seed of everything random in a run. There is none by default from a clock: a run can be repeated.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Seed(u64);

impl Seed {
    /// Seed number `n`.
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Neither a number nor a commit.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("read `{0}` as a seed: want a number below 2^64, or the 40 hexadecimal digits of a commit")]
pub struct ParseSeedError(String);

impl FromStr for Seed {
    type Err = ParseSeedError;

    /// A decimal number, or a commit, of which the first sixteen digits count.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let commit = text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let seed = if commit { u64::from_str_radix(&text[..16], 16).ok() } else { text.parse().ok() };
        seed.map(Self).ok_or_else(|| ParseSeedError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_number_or_a_commit() {
        assert_eq!("42".parse(), Ok(Seed::new(42)));
        assert_eq!("00000000000000ff00000000000000000000000a".parse(), Ok(Seed::new(255)));
        assert!("0xff".parse::<Seed>().is_err());
        assert!("-1".parse::<Seed>().is_err());
    }
}

//! Inter-arrivals and sizes from a file, so that market-data-like bursts can be played.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use thiserror::Error;
use tickpong_units::{Nanos, PayloadLen, PayloadLenError, Rate};

/// One message of a trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TraceStep {
    /// After the message before it; after the start, of the first.
    pub gap: Nanos,
    /// How large.
    pub payload: PayloadLen,
}

/// A trace, kept in memory for the run and repeated as long as the plan lasts.
///
/// One message a line: inter-arrival in nanoseconds and payload in bytes, with a comma or blanks between. Empty lines and what follows `#`
/// are passed over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Trace {
    steps: Arc<[TraceStep]>,
    digest: String,
}

/// Why a trace cannot be played.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum TraceError {
    /// Not two whole numbers.
    #[error(
        "line {line}: read `{text}` as a message: want inter-arrival in nanoseconds and payload in bytes, such as `10000 264`"
    )]
    Malformed {
        /// From one.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// A size that is none.
    #[error("line {line}: {source}")]
    Payload {
        /// From one.
        line: usize,
        /// What is wrong with it.
        #[source]
        source: PayloadLenError,
    },
    /// Nothing to play.
    #[error("there is no message in it")]
    Empty,
    /// Everything at one instant, for ever.
    #[error("all its messages are due at the same instant: the inter-arrivals add up to nothing")]
    NoTime,
    /// It stays in memory during the run.
    #[error("it has more than {} messages", Trace::MAX_STEPS)]
    TooLong,
}

impl Trace {
    /// The longest trace: sixteen megabytes in memory.
    pub const MAX_STEPS: usize = 1 << 20;

    /// Reads a trace from its text.
    ///
    /// # Errors
    ///
    /// Names the line that is no message, or what makes the whole impossible.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut steps = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            if steps.len() == Self::MAX_STEPS {
                return Err(TraceError::TooLong);
            }
            steps.push(step(line, text)?);
        }
        if steps.is_empty() {
            return Err(TraceError::Empty);
        }
        let trace = Self { digest: digest(&steps), steps: steps.into() };
        if trace.length() == Nanos::ZERO { Err(TraceError::NoTime) } else { Ok(trace) }
    }

    /// The messages, in order.
    pub fn steps(&self) -> &Arc<[TraceStep]> {
        &self.steps
    }

    /// How long one round of it lasts.
    pub fn length(&self) -> Nanos {
        self.steps.iter().fold(Nanos::ZERO, |sum, step| sum.saturating_add(step.gap))
    }

    /// The largest payload.
    ///
    /// # Panics
    ///
    /// Never: a trace has at least one message.
    pub fn largest(&self) -> PayloadLen {
        self.steps.iter().map(|step| step.payload).max().expect("a trace holds a message")
    }

    /// Its mean rate, at least one message a second.
    pub fn mean_rate(&self) -> Rate {
        let hz = (self.steps.len() as u128 * 1_000_000_000).div_ceil(u128::from(self.length().get()));
        Rate::new(u64::try_from(hz).unwrap_or(u64::MAX)).unwrap_or_else(|| unreachable!("a quotient rounded up"))
    }

    /// The first sixteen hexadecimal digits of SHA-256 over the messages: what a plan knows a trace by.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

fn step(line: usize, text: &str) -> Result<TraceStep, TraceError> {
    let malformed = || TraceError::Malformed { line, text: text.to_owned() };
    let mut fields = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|field| !field.is_empty());
    let mut number = || fields.next().and_then(|field| field.parse::<u64>().ok()).ok_or_else(malformed);
    let (gap, payload) = (number()?, number()?);
    if fields.next().is_some() {
        return Err(malformed());
    }
    let payload = PayloadLen::new(payload).map_err(|source| TraceError::Payload { line, source })?;
    Ok(TraceStep { gap: Nanos::new(gap), payload })
}

fn digest(steps: &[TraceStep]) -> String {
    let mut sha = Sha256::new();
    for step in steps {
        sha.update(step.gap.get().to_le_bytes());
        sha.update((step.payload.get() as u64).to_le_bytes());
    }
    crate::plan::hex(&sha.finalize()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_a_message_a_line() {
        let trace = Trace::parse("# a comment\n1000,264\n\n500\t1472 # behind\n0 56\n").unwrap();
        assert_eq!(trace.steps().len(), 3);
        assert_eq!(trace.length(), Nanos::new(1_500));
        assert_eq!(trace.largest(), PayloadLen::new(1_472).unwrap());
        assert_eq!(trace.mean_rate().get(), 2_000_000);
        assert_eq!(trace.digest(), Trace::parse("1000 264\n500 1472\n0 56").unwrap().digest());
        assert_ne!(trace.digest(), Trace::parse("1000 264\n500 1472\n1 56").unwrap().digest());
    }

    #[test]
    fn a_bad_trace_names_the_line() {
        let refused = |text: &str| Trace::parse(text).unwrap_err().to_string();
        assert_eq!(
            refused("1000 264\n10us 264"),
            "line 2: read `10us 264` as a message: want inter-arrival in nanoseconds and payload in bytes, such as `10000 264`"
        );
        assert_eq!(
            refused("1000 264 1"),
            "line 1: read `1000 264 1` as a message: want inter-arrival in nanoseconds and payload in bytes, such as `10000 264`"
        );
        assert_eq!(refused("5 10"), "line 1: use a message of 10 bytes: the header alone is 56; want 56 to 65507");
        assert_eq!(refused("# nothing"), "there is no message in it");
        assert_eq!(
            refused("0 264\n0 264"),
            "all its messages are due at the same instant: the inter-arrivals add up to nothing"
        );
    }
}

//! A control connection: whole messages in and out, within limits of size and time, and sealed once both ends trust each other.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tickpong_hostio::clock::monotonic_ns;
use tickpong_units::Nanos;
use tickpong_wire::control::{BadMessage, FRAME_HEADER_LEN, FrameHeader, MAX_BODY, MAX_REPORT, Message, SEAL_LEN};

use crate::RunnerError;
use crate::key::Seal;
use crate::resolve::canonical;

/// How long a write may take before the other end counts as gone.
const WRITE_PATIENCE: Duration = Duration::from_secs(3);

/// One end of a control connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    /// What has come of the next frame.
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    /// Bytes at the front of the inbox that were given out.
    taken: usize,
    /// The longest body that makes sense now.
    most: usize,
    seals: Option<Seals>,
}

/// What makes the messages of a session its own, each way.
#[derive(Debug)]
struct Seals {
    ours: Seal,
    theirs: Seal,
}

/// What came within the time given.
pub(crate) enum Incoming<'a> {
    Message(Message<'a>),
    Nothing,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_PATIENCE))?;
        Ok(Self { stream, inbox: Vec::with_capacity(2_048), outbox: Vec::new(), taken: 0, most: MAX_BODY, seals: None })
    }

    /// Of the family that is spoken on the wire, whatever the listener's is.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr().map(canonical)
    }

    /// From here on every message bears a seal, each way.
    pub(crate) fn seal(&mut self, ours: Seal, theirs: Seal) {
        self.seals = Some(Seals { ours, theirs });
    }

    /// From here on a report may come, which is longer than anything else.
    pub(crate) fn allow_report(&mut self) {
        self.most = MAX_REPORT;
    }

    /// Sends one message.
    pub(crate) fn send(&mut self, doing: &'static str, message: &Message<'_>) -> Result<(), RunnerError> {
        // Reports alone are large; everything else fits the first kilobyte.
        let body = if matches!(message, Message::Report { .. }) { MAX_REPORT } else { MAX_BODY };
        self.outbox.resize(FRAME_HEADER_LEN + body, 0);
        let length = message.emit(&mut self.outbox).map_err(|source| RunnerError::BadMessage { doing, source })?;
        self.outbox.truncate(length);
        if let Some(seals) = &mut self.seals {
            let seal = seals.ours.make(&self.outbox);
            self.outbox.extend_from_slice(&seal);
        }
        self.stream.write_all(&self.outbox).map_err(|source| RunnerError::Control { doing, source })
    }

    /// Waits for one message, at most for `patience`, however slowly its bytes come.
    pub(crate) fn expect(&mut self, doing: &'static str, patience: Nanos) -> Result<Message<'_>, RunnerError> {
        let until = monotonic_ns().saturating_add(patience.get());
        self.fill_frame(doing, until)?;
        if self.frame_len().map_err(|source| RunnerError::BadMessage { doing, source })?.is_none() {
            return Err(RunnerError::Silent { doing, seconds: patience.get().div_ceil(1_000_000_000) });
        }
        self.take(doing)
    }

    /// Looks whether a message is there, waiting for it at most for `patience`.
    pub(crate) fn poll(&mut self, doing: &'static str, patience: Nanos) -> Result<Incoming<'_>, RunnerError> {
        self.fill_frame(doing, monotonic_ns().saturating_add(patience.get()))?;
        match self.frame_len().map_err(|source| RunnerError::BadMessage { doing, source })? {
            Some(_) => self.take(doing).map(Incoming::Message),
            None => Ok(Incoming::Nothing),
        }
    }

    /// Reads until a whole frame is there or the time is over.
    fn fill_frame(&mut self, doing: &'static str, until: u64) -> Result<(), RunnerError> {
        self.drop_taken();
        let failed = |source| RunnerError::Control { doing, source };
        let mut chunk = [0; 4_096];
        while self.frame_len().map_err(|source| RunnerError::BadMessage { doing, source })?.is_none() {
            let left = until.saturating_sub(monotonic_ns());
            if left == 0 {
                break;
            }
            self.stream
                .set_read_timeout(Some(Duration::from_nanos(left).max(Duration::from_millis(1))))
                .map_err(failed)?;
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(failed(io::Error::new(ErrorKind::UnexpectedEof, "the other end hung up"))),
                Ok(n) => self.inbox.extend_from_slice(&chunk[..n]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    /// The length of the frame at the front of the inbox, once it is whole.
    fn frame_len(&self) -> Result<Option<usize>, BadMessage> {
        // Another program may say less than a header and then wait.
        FrameHeader::begin(&self.inbox)?;
        let Some(header) = self.inbox.first_chunk::<FRAME_HEADER_LEN>() else { return Ok(None) };
        let seal = if self.seals.is_some() { SEAL_LEN } else { 0 };
        let length = FRAME_HEADER_LEN + FrameHeader::parse(header, self.most)?.body_len + seal;
        Ok((self.inbox.len() >= length).then_some(length))
    }

    fn take(&mut self, doing: &'static str) -> Result<Message<'_>, RunnerError> {
        let bad = |source| RunnerError::BadMessage { doing, source };
        let (front, body) = self.inbox.split_first_chunk::<FRAME_HEADER_LEN>().ok_or(bad(BadMessage::TooShort))?;
        let header = FrameHeader::parse(front, self.most).map_err(bad)?;
        let (body, behind) = body.split_at_checked(header.body_len).ok_or(bad(BadMessage::TooShort))?;
        self.taken = FRAME_HEADER_LEN + header.body_len;
        if let Some(seals) = &mut self.seals {
            let seal = behind.first_chunk::<SEAL_LEN>().ok_or(bad(BadMessage::TooShort))?;
            if !seals.theirs.holds(&self.inbox[..self.taken], seal) {
                return Err(bad(BadMessage::Seal));
            }
            self.taken += SEAL_LEN;
        }
        Message::parse(header, body).map_err(bad)
    }

    /// Drops the frame that was given out last: it lived in the inbox until now, because its text is borrowed from there.
    fn drop_taken(&mut self) {
        self.inbox.drain(..self.taken);
        self.taken = 0;
    }
}

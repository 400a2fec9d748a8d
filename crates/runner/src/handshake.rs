//! How two sides come to trust each other, before anything else is said.

use std::net::SocketAddr;

use tickpong_units::Nanos;
use tickpong_wire::Token;
use tickpong_wire::control::{Message, Nonce, OLDEST_PROTOCOL, PROTOCOL};

use crate::connection::Connection;
use crate::key::{Key, Role, Session};
use crate::{RunnerError, VERSION};

/// How long either side waits for the other's next word: a person may be at neither end.
pub(crate) const PATIENCE: Nanos = Nanos::from_secs(3);

/// A greeting is there as soon as the connection is: whoever takes longer keeps others from being heard.
const GREETING_PATIENCE: Nanos = Nanos::from_secs(1);

/// The pinger's side.
pub(crate) fn greet(connection: &mut Connection, key: &Key, address: SocketAddr) -> Result<Token, RunnerError> {
    let doing = "greet the reflector";
    let pinger = nonce()?;
    let hello = Message::Hello { newest: PROTOCOL, oldest: OLDEST_PROTOCOL, nonce: pinger, version: VERSION };
    connection.send(doing, &hello)?;
    let (protocol, reflector) = match connection.expect(doing, PATIENCE)? {
        // It chose from what was offered, or does not speak as we do.
        Message::Welcome { protocol, version, .. } if !(OLDEST_PROTOCOL..=PROTOCOL).contains(&protocol) => {
            return Err(refusal(Message::Incompatible { newest: protocol, oldest: protocol, version }, doing, address));
        }
        Message::Welcome { protocol, nonce, keyed, .. } => {
            if keyed && !key.is_some() {
                let reason = "it wants a key; give this side the same --key-file".to_owned();
                return Err(RunnerError::Refused { address, reason });
            }
            if !keyed && key.is_some() {
                let reason = "it has no key; give it the same --key-file, or leave this side's away".to_owned();
                return Err(RunnerError::Refused { address, reason });
            }
            (protocol, nonce)
        }
        other => return Err(refusal(other, doing, address)),
    };
    let session = Session { protocol, pinger, reflector };
    connection.send(doing, &Message::Authenticate { mac: key.prove(Role::Pinger, &session) })?;
    match connection.expect(doing, PATIENCE)? {
        Message::Authenticated { mac } if key.verify(Role::Reflector, &session, &mac) => {
            connection.seal(key.seal(Role::Pinger, &session), key.seal(Role::Reflector, &session));
            Ok(key.token(&session))
        }
        Message::Authenticated { .. } => Err(RunnerError::NotProven { address }),
        other => Err(refusal(other, doing, address)),
    }
}

/// What a reflector's no means.
pub(crate) fn refusal(message: Message<'_>, doing: &'static str, address: SocketAddr) -> RunnerError {
    match message {
        Message::Busy { seconds_left } => RunnerError::Busy { address, seconds_left },
        Message::Refused { reason } => RunnerError::Refused { address, reason: reason.escape_debug().to_string() },
        Message::Incompatible { newest, oldest, version } => RunnerError::Incompatible {
            oldest,
            newest,
            theirs: version.escape_debug().to_string(),
            our_oldest: OLDEST_PROTOCOL,
            our_newest: PROTOCOL,
            ours: VERSION,
        },
        _ => RunnerError::OutOfTurn { doing },
    }
}

/// The reflector's side: what came of a greeting.
pub(crate) enum Greeted {
    /// The pinger holds the key, and waits for the reflector's own proof.
    Trusted { session: Session },
    /// The pinger was sent away, or said nothing that makes sense.
    SentAway { why: String },
}

/// Hears a pinger out. `busy` says how long another session still lasts, and is asked before any proof is checked.
pub(crate) fn hear(
    connection: &mut Connection,
    key: &Key,
    busy: impl FnOnce() -> Option<u32>,
) -> Result<Greeted, RunnerError> {
    let doing = "hear a pinger's greeting";
    let Message::Hello { newest, oldest, nonce: pinger, version } = connection.expect(doing, GREETING_PATIENCE)? else {
        return Err(RunnerError::OutOfTurn { doing });
    };
    if newest < OLDEST_PROTOCOL || oldest > PROTOCOL {
        let why = format!("it speaks protocol {oldest} to {newest} (tickpong {})", version.escape_debug());
        let ours = Message::Incompatible { newest: PROTOCOL, oldest: OLDEST_PROTOCOL, version: VERSION };
        connection.send(doing, &ours)?;
        return Ok(Greeted::SentAway { why });
    }
    let protocol = newest.min(PROTOCOL);
    if let Some(seconds_left) = busy() {
        connection.send(doing, &Message::Busy { seconds_left })?;
        return Ok(Greeted::SentAway { why: "another session is on".to_owned() });
    }
    let session = Session { protocol, pinger, reflector: nonce()? };
    let welcome = Message::Welcome { protocol, nonce: session.reflector, keyed: key.is_some(), version: VERSION };
    connection.send(doing, &welcome)?;
    let Message::Authenticate { mac } = connection.expect(doing, PATIENCE)? else {
        return Err(RunnerError::OutOfTurn { doing });
    };
    if !key.verify(Role::Pinger, &session, &mac) {
        connection
            .send(doing, &Message::Refused { reason: "the key is another; give both sides the same --key-file" })?;
        return Ok(Greeted::SentAway { why: "it does not hold the key".to_owned() });
    }
    Ok(Greeted::Trusted { session })
}

/// Proves to a pinger that this side holds the key, too; from here on both seal what they say.
pub(crate) fn prove(connection: &mut Connection, key: &Key, session: &Session) -> Result<Token, RunnerError> {
    let mac = key.prove(Role::Reflector, session);
    connection.send("prove the key", &Message::Authenticated { mac })?;
    connection.seal(key.seal(Role::Reflector, session), key.seal(Role::Pinger, session));
    Ok(key.token(session))
}

fn nonce() -> Result<Nonce, RunnerError> {
    let mut nonce = Nonce::default();
    getrandom::fill(&mut nonce).map_err(|error| RunnerError::Random(error.to_string()))?;
    Ok(nonce)
}

//! The shared key, and what is proven and derived with it.
//!
//! Both sides draw a nonce. Each proves by HMAC-SHA-256 over both nonces, the protocol version and its own role that it holds the key, and
//! the session's token is derived the same way, so that it never travels over the control connection. So are the two keys, one for each
//! direction, that every later control message is sealed with. Without a key all of it is made with an empty one: it then protects against
//! mistakes, not against people.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac as _};
use sha2::Sha256;
use thiserror::Error;
use tickpong_wire::Token;
use tickpong_wire::control::{Mac, Nonce, SEAL_LEN};

/// The environment variable that may hold the key.
pub const KEY_VARIABLE: &str = "TICKPONG_KEY";

const MIN_KEY: usize = 16;
const MAX_KEY: u64 = 4_096;

/// A pre-shared key, or none.
#[derive(Clone, Default)]
pub struct Key(Option<Vec<u8>>);

/// Why a key cannot be used.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the fields are what the messages show")]
pub enum KeyError {
    #[error("open {}: {source}", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("{} may be read by others (mode {mode:03o}); chmod 600 it, and make a new key if anybody could have read it", path.display())]
    Readable { path: PathBuf, mode: u32 },
    #[error("{} is no regular file", path.display())]
    NotAFile { path: PathBuf },
    #[error("{whence} holds {length} bytes; want {MIN_KEY} to {MAX_KEY}, such as from `openssl rand -hex 32`")]
    Length { whence: String, length: usize },
}

impl Key {
    /// The key in a file that nobody else may read. White space around it does not count.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, others can read it, or it is too short or long for a key.
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        let open = |source| KeyError::Open { path: path.to_owned(), source };
        let file = File::open(path).map_err(open)?;
        // Asked of the open file, so that nobody can put another under the name in between.
        let metadata = file.metadata().map_err(open)?;
        if !metadata.is_file() {
            return Err(KeyError::NotAFile { path: path.to_owned() });
        }
        if metadata.mode() & 0o077 != 0 {
            return Err(KeyError::Readable { path: path.to_owned(), mode: metadata.mode() & 0o777 });
        }
        let mut bytes = Vec::new();
        file.take(MAX_KEY + 1).read_to_end(&mut bytes).map_err(open)?;
        Self::from_bytes(&bytes, || path.display().to_string())
    }

    /// The key in the environment variable [`KEY_VARIABLE`], or none where that is not set.
    ///
    /// # Errors
    ///
    /// When it is too short or long for a key.
    pub fn from_environment() -> Result<Self, KeyError> {
        match std::env::var_os(KEY_VARIABLE) {
            Some(value) => Self::from_bytes(value.as_encoded_bytes(), || KEY_VARIABLE.to_owned()),
            None => Ok(Self(None)),
        }
    }

    /// The key that is this text.
    ///
    /// # Errors
    ///
    /// When it is too short or long for a key.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        Self::from_bytes(text.as_bytes(), || "the key given".to_owned())
    }

    fn from_bytes(bytes: &[u8], whence: impl FnOnce() -> String) -> Result<Self, KeyError> {
        let key = bytes.trim_ascii();
        if key.len() < MIN_KEY || bytes.len() as u64 > MAX_KEY {
            return Err(KeyError::Length { whence: whence(), length: key.len() });
        }
        Ok(Self(Some(key.to_owned())))
    }

    /// Whether there is a key at all.
    pub const fn is_some(&self) -> bool {
        self.0.is_some()
    }

    fn mac(&self, purpose: &str, session: &Session) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_deref().unwrap_or_default())
            .unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        mac.update(purpose.as_bytes());
        mac.update(&session.protocol.to_le_bytes());
        mac.update(&session.pinger);
        mac.update(&session.reflector);
        mac
    }

    /// Proves that this side, in the role, holds the key.
    pub(crate) fn prove(&self, role: Role, session: &Session) -> Mac {
        self.mac(role.purpose(), session).finalize().into_bytes().into()
    }

    /// Whether the other side has proven, in its role, that it holds the same key. Takes the same time for every wrong proof.
    pub(crate) fn verify(&self, role: Role, session: &Session, proof: &Mac) -> bool {
        self.mac(role.purpose(), session).verify_slice(proof).is_ok()
    }

    /// Seals what this side, in the role, says in the session.
    pub(crate) fn seal(&self, role: Role, session: &Session) -> Seal {
        let key = self.mac(role.seals(), session).finalize().into_bytes();
        let mac = Hmac::new_from_slice(&key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        Seal { mac, count: 0 }
    }

    /// The token of the session.
    pub(crate) fn token(&self, session: &Session) -> Token {
        let mac: Mac = self.mac("tickpong session token", session).finalize().into_bytes().into();
        Token::new(*mac.first_chunk().unwrap_or_else(|| unreachable!("a MAC is longer")))
    }
}

impl std::fmt::Debug for Key {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_some() { "Key(…)" } else { "Key(none)" })
    }
}

/// Seals the frames of one direction, or checks their seals: each holds for its place in the conversation alone.
pub(crate) struct Seal {
    mac: Hmac<Sha256>,
    count: u64,
}

impl Seal {
    /// The seal of the next frame.
    pub(crate) fn make(&mut self, frame: &[u8]) -> [u8; SEAL_LEN] {
        let mac: Mac = self.next(frame).finalize().into_bytes().into();
        *mac.first_chunk().unwrap_or_else(|| unreachable!("a MAC is longer"))
    }

    /// Whether this is the seal of the next frame. Takes the same time for every wrong one.
    pub(crate) fn holds(&mut self, frame: &[u8], seal: &[u8; SEAL_LEN]) -> bool {
        self.next(frame).verify_truncated_left(seal).is_ok()
    }

    fn next(&mut self, frame: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(&self.count.to_le_bytes());
        mac.update(frame);
        self.count += 1;
        mac
    }
}

impl std::fmt::Debug for Seal {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seal").field("count", &self.count).finish_non_exhaustive()
    }
}

/// Who proves, and who speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    Pinger,
    Reflector,
}

impl Role {
    /// Different for each role, so that a proof cannot be sent back to whom it came from.
    const fn purpose(self) -> &'static str {
        match self {
            Self::Pinger => "tickpong pinger proves",
            Self::Reflector => "tickpong reflector proves",
        }
    }

    /// And so is what it says.
    const fn seals(self) -> &'static str {
        match self {
            Self::Pinger => "tickpong pinger seals",
            Self::Reflector => "tickpong reflector seals",
        }
    }
}

/// What makes a session's proofs its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session {
    pub(crate) protocol: u16,
    pub(crate) pinger: Nonce,
    pub(crate) reflector: Nonce,
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn session() -> Session {
        Session { protocol: 1, pinger: [1; 16], reflector: [2; 16] }
    }

    fn key(text: &str) -> Key {
        Key::from_bytes(text.as_bytes(), String::new).unwrap()
    }

    #[test]
    fn a_proof_holds_for_its_role_key_and_nonces_alone() {
        let ours = key("0123456789abcdef");
        let proof = ours.prove(Role::Pinger, &session());
        assert!(ours.verify(Role::Pinger, &session(), &proof));
        assert!(!ours.verify(Role::Reflector, &session(), &proof), "sent back to its maker");
        assert!(!key("0123456789abcdeX").verify(Role::Pinger, &session(), &proof));
        assert!(!ours.verify(Role::Pinger, &Session { reflector: [3; 16], ..session() }, &proof), "replayed");
        assert_ne!(ours.token(&session()), key("0123456789abcdeX").token(&session()));
        assert_eq!(format!("{ours:?}"), "Key(…)");
    }

    #[test]
    fn a_seal_holds_for_its_frame_place_direction_and_session_alone() {
        let ours = key("0123456789abcdef");
        let seal = |role, session: Session| ours.seal(role, &session);
        let (mut says, mut hears) = (seal(Role::Pinger, session()), seal(Role::Pinger, session()));
        let (first, second) = (says.make(b"first"), says.make(b"second"));
        assert!(hears.holds(b"first", &first));
        assert!(hears.holds(b"second", &second));
        assert!(!hears.holds(b"second", &second), "repeated");
        let fresh = || seal(Role::Pinger, session());
        assert!(!fresh().holds(b"second", &second), "the first was left out");
        assert!(!fresh().holds(b"First", &first), "changed");
        assert!(!seal(Role::Reflector, session()).holds(b"first", &first), "sent back to its maker");
        let another = Session { pinger: [3; 16], ..session() };
        assert!(!seal(Role::Pinger, another).holds(b"first", &first), "of another session");
        assert!(!key("0123456789abcdeX").seal(Role::Pinger, &session()).holds(b"first", &first));
        assert!(!Key::default().seal(Role::Pinger, &session()).holds(b"first", &first));
        assert_eq!(format!("{:?}", fresh()), "Seal { count: 0, .. }");
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        fs::write(&path, "0123456789abcdef0123\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let said = Key::from_file(&path).unwrap_err().to_string();
        assert!(said.contains("may be read by others (mode 640); chmod 600 it"), "{said}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(Key::from_file(&path).unwrap().0.unwrap(), b"0123456789abcdef0123");
        fs::write(&path, "short\n").unwrap();
        let said = Key::from_file(&path).unwrap_err().to_string();
        assert!(said.contains("holds 5 bytes; want 16 to 4096"), "{said}");
        assert!(Key::from_file(dir.path()).is_err());
        assert!(Key::from_file(&dir.path().join("none")).unwrap_err().to_string().contains("No such file"));
    }
}

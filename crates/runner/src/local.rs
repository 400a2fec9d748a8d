//! Two hosts on this machine, for a demonstration: the reflector runs as a process of its own in the second host.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use tickpong_hostio::facts::binary_path;
use tickpong_hostio::hosts::{Hosts, Refused, TwoHosts};

use crate::{KEY_VARIABLE, RunnerError};

/// Two hosts, and why they are not better ones.
#[derive(Debug)]
pub struct LocalHosts {
    /// The hosts; the calling process is in the first.
    pub hosts: TwoHosts,
    /// The better kinds that the machine refused.
    pub refused: Vec<Refused>,
}

impl LocalHosts {
    /// Sets up two hosts: of the kind asked for, or of the best kind that the machine allows. To be called before any thread is started.
    ///
    /// # Errors
    ///
    /// When the kind asked for is refused.
    pub fn set_up(kind: Option<Hosts>) -> Result<Self, RunnerError> {
        match kind {
            Some(kind) => Ok(Self { hosts: TwoHosts::set_up(kind)?, refused: Vec::new() }),
            None => {
                let (hosts, refused) = TwoHosts::choose();
                Ok(Self { hosts, refused })
            }
        }
    }

    /// Starts this program as a reflector in the second host. It ends with this process.
    ///
    /// # Errors
    ///
    /// When it cannot be started, or ends before it listens.
    pub fn start_reflector(&self, arguments: &[String]) -> Result<LocalReflector, RunnerError> {
        let key = random_key()?;
        let program =
            binary_path().map_err(|error| RunnerError::StartReflector { source: std::io::Error::other(error) })?;
        let mut command = Command::new(program);
        command
            .args(["reflect", "--listen", &format!("{}:0", self.hosts.reflector_address())])
            .args(arguments)
            .env(KEY_VARIABLE, &key)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // A terminal interrupts its whole process group: the pinger alone is to hear it, and still to fetch the reflector's report.
        command.process_group(0);
        self.hosts.reflector_command(&mut command);
        let mut child = command.spawn().map_err(|source| RunnerError::StartReflector { source })?;
        let mut first = String::new();
        if let Some(out) = child.stdout.take() {
            let mut out = BufReader::new(out);
            out.read_line(&mut first).map_err(|source| RunnerError::StartReflector { source })?;
        }
        match first.trim().strip_prefix("listening on ") {
            Some(address) => Ok(LocalReflector { child, address: address.to_owned(), key }),
            None => Err(RunnerError::ReflectorEnded { said: last_words(&mut child) }),
        }
    }
}

/// A reflector that this process has started; killed when dropped, should it still run.
#[derive(Debug)]
pub struct LocalReflector {
    child: Child,
    /// Where it listens.
    pub address: String,
    key: String,
}

impl LocalReflector {
    /// The key that it shares with this process alone.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl Drop for LocalReflector {
    fn drop(&mut self) {
        // Ended already, most likely; both calls then say so.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn last_words(child: &mut Child) -> String {
    let mut said = String::new();
    if let Some(mut out) = child.stderr.take() {
        let _ = out.by_ref().take(4_096).read_to_string(&mut said);
    }
    let _ = child.kill();
    let _ = child.wait();
    if said.trim().is_empty() { "it said nothing".to_owned() } else { said.trim().to_owned() }
}

fn random_key() -> Result<String, RunnerError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| RunnerError::Random(error.to_string()))?;
    Ok(tickpong_record::hex(&bytes))
}

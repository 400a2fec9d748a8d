//! Ctrl-C and its relatives: the first asks for an orderly end, the second ends at once.
//!
//! A signal that this process was started to ignore (by nohup, or in the background of a script) stays ignored.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use tickpong_hostio::signal::is_ignored;

use crate::exit;

/// A flag that is set when somebody wants this process to end.
pub(crate) fn on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal)) {
        // In this order: the first signal finds the flag unset and sets it, the second finds it set.
        flag::register_conditional_shutdown(signal, i32::from(exit::INTERRUPTED), Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .with_context(|| format!("watch for signal {signal}"))?;
    }
    Ok(stop)
}

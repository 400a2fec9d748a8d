//! What this process does about signals.
//!
//! Owns: which are ignored.
//! Does not own: handlers.

use std::fs;

use crate::usage::status_value;

/// Whether this process ignores the signal of this number, as its parent may have asked (see nohup(1)). `false` where /proc is not there.
pub fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored(&status).is_some_and(|mask| (1..=64).contains(&signal) && mask >> (signal - 1) & 1 == 1)
}

/// One bit a signal, from number 1 up.
fn ignored(status: &str) -> Option<u64> {
    u64::from_str_radix(status_value(status, "SigIgn")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_is_read_from_the_status() {
        assert_eq!(ignored("SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0\n"), Some(0x1001));
        assert_eq!(ignored("Name:\tx\n"), None);
    }

    #[test]
    fn what_the_runtime_ignores_is_ignored() {
        assert!(is_ignored(libc::SIGPIPE), "by the standard library");
        assert!(!is_ignored(libc::SIGSEGV) && !is_ignored(0) && !is_ignored(65));
    }
}

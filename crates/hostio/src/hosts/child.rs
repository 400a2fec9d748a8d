//! What a child does between fork and exec.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, parent_id};
use std::process::{self, Command};
use std::sync::Arc;

use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

/// Makes the child of `command` die by SIGKILL as soon as the thread that spawned it ends, however it ends.
///
/// The kernel watches the spawning *thread*: spawn from one that lives as long as the child shall, such as the main thread.
/// It forgets the wish when the child executes a file with capabilities or a set-user-ID bit.
pub fn die_with_parent(command: &mut Command) {
    let parent = process::id();
    let hook = move || {
        set_pdeathsig(Signal::SIGKILL)?;
        // A parent that died before the wish was made sends no signal any more: somebody else is the parent now.
        if parent_id() == parent { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    };
    #[expect(unsafe_code, reason = "the child alone can make the wish, and only before exec")]
    // SAFETY: after fork the hook makes two system calls, prctl(2) and getppid(2), and builds an error from a number: it
    // allocates nothing and takes no lock, which is all that signal-safety(7) asks.
    unsafe {
        command.pre_exec(hook);
    }
}

/// Makes the child of `command` start in `namespace`, a network namespace.
pub(super) fn enter_namespace(command: &mut Command, namespace: Arc<OwnedFd>) {
    let hook = move || Ok(setns(&namespace, CloneFlags::CLONE_NEWNET)?);
    #[expect(unsafe_code, reason = "the child alone moves, so it has to be before exec")]
    // SAFETY: after fork the hook makes one system call, setns(2), on a descriptor that it owns a share of: it allocates
    // nothing and takes no lock, which is all that signal-safety(7) asks.
    unsafe {
        command.pre_exec(hook);
    }
}

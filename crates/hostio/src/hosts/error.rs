//! What stands in the way of two hosts.

use std::fmt;
use std::fs;
use std::io;

use thiserror::Error;

use super::Hosts;

/// Why two hosts could not be made.
#[derive(Debug, Error)]
pub enum HostsError {
    /// The number of threads is unknown.
    #[error("count the threads of this process in /proc/self/task")]
    CountThreads(#[source] io::Error),
    /// A namespace would take the calling thread along and leave the others behind.
    #[error("make two hosts in a process of {threads} threads: want it done before the second one is started")]
    Threads {
        /// How many there were.
        threads: usize,
    },
    /// The rehearsal could not be held, or told nothing.
    #[error("rehearse two hosts in a child process")]
    Rehearse(#[source] io::Error),
    /// The machine refused a step.
    #[error("{step}: {obstacle}")]
    Refused {
        /// What was being done, and to what.
        step: String,
        /// What stood in the way, as far as the machine's settings tell.
        obstacle: Obstacle,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
}

/// What stood in the way of a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Obstacle {
    /// A privilege is missing, or something above the process (a container's filter, a security module) forbids the call.
    NotPermitted,
    /// `user.max_user_namespaces` is zero.
    UserNamespacesOff,
    /// `kernel.unprivileged_userns_clone` is zero (Debian's switch).
    UserNamespacesForRootOnly,
    /// `AppArmor` takes the privileges away within a new user namespace (Ubuntu's default).
    AppArmor,
    /// As many namespaces as the limits allow exist already.
    LimitReached,
    /// The kernel was built without, or its module is not there.
    NotInKernel,
    /// Something else: the kernel's own words say what.
    Unknown,
}

impl Obstacle {
    /// The obstacle behind the kernel's `error` to a step towards hosts of `kind`.
    pub(super) fn new(kind: Hosts, error: &io::Error, settings: Settings) -> Self {
        let for_user = kind == Hosts::UserNamespaces;
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) if for_user && settings.unprivileged_userns_clone == Some(0) => {
                Self::UserNamespacesForRootOnly
            }
            Some(libc::EPERM | libc::EACCES) if for_user && settings.apparmor_restricts.is_some_and(|on| on != 0) => {
                Self::AppArmor
            }
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted,
            Some(libc::ENOSPC | libc::EUSERS) if for_user && settings.max_user_namespaces == Some(0) => {
                Self::UserNamespacesOff
            }
            Some(libc::ENOSPC | libc::EUSERS) => Self::LimitReached,
            Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP | libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT) => {
                Self::NotInKernel
            }
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Obstacle {
    /// What it is, and what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPermitted => {
                "not permitted (want root, or CAP_SYS_ADMIN and CAP_NET_ADMIN; a container's seccomp profile forbids it too)"
            }
            Self::UserNamespacesOff => "user namespaces are off (want sysctl user.max_user_namespaces above 0)",
            Self::UserNamespacesForRootOnly => {
                "user namespaces are for root only (want sysctl kernel.unprivileged_userns_clone=1)"
            }
            Self::AppArmor => {
                "AppArmor restricts user namespaces (want sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a profile)"
            }
            Self::LimitReached => "no more namespaces are allowed (see sysctl user.max_net_namespaces)",
            Self::NotInKernel => "this kernel does not have it (want CONFIG_NET_NS, CONFIG_USER_NS and CONFIG_VETH)",
            Self::Unknown => "refused",
        })
    }
}

/// The machine's settings on user namespaces; `None` where it has no such setting.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settings {
    pub(super) max_user_namespaces: Option<u64>,
    pub(super) unprivileged_userns_clone: Option<u64>,
    pub(super) apparmor_restricts: Option<u64>,
}

impl Settings {
    pub(super) fn read() -> Self {
        let setting = |name: &str| fs::read_to_string(format!("/proc/sys/{name}")).ok()?.trim().parse().ok();
        Self {
            max_user_namespaces: setting("user/max_user_namespaces"),
            unprivileged_userns_clone: setting("kernel/unprivileged_userns_clone"),
            apparmor_restricts: setting("kernel/apparmor_restrict_unprivileged_userns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_explain_the_refusal() {
        let open = Settings { max_user_namespaces: Some(1_000), ..Settings::default() };
        let off = Settings { max_user_namespaces: Some(0), ..Settings::default() };
        let debian = Settings { unprivileged_userns_clone: Some(0), ..open };
        let ubuntu = Settings { apparmor_restricts: Some(1), ..open };
        for (kind, errno, settings, want) in [
            (Hosts::Namespaces, libc::EPERM, ubuntu, Obstacle::NotPermitted),
            (Hosts::UserNamespaces, libc::EPERM, open, Obstacle::NotPermitted),
            (Hosts::UserNamespaces, libc::ENOSPC, off, Obstacle::UserNamespacesOff),
            (Hosts::UserNamespaces, libc::ENOSPC, open, Obstacle::LimitReached),
            (Hosts::UserNamespaces, libc::EPERM, debian, Obstacle::UserNamespacesForRootOnly),
            (Hosts::UserNamespaces, libc::EACCES, ubuntu, Obstacle::AppArmor),
            (Hosts::Namespaces, libc::EOPNOTSUPP, open, Obstacle::NotInKernel),
            (Hosts::Namespaces, libc::EIO, open, Obstacle::Unknown),
        ] {
            let error = io::Error::from_raw_os_error(errno);
            assert_eq!(Obstacle::new(kind, &error, settings), want, "{kind} {error}");
        }
    }
}

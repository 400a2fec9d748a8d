//! Socket options by number: those that the safe crates do not name.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Word `N - 1` of an option made of 32-bit words; `None` where the kernel returned fewer.
pub(super) fn word<const N: usize>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<Option<u32>> {
    let mut words = [0_u32; N];
    let mut len = length_of::<[u32; N]>();
    #[expect(unsafe_code, reason = "an option no safe crate names")]
    // SAFETY: `words` and `len` are locals that outlive the call and `len` is the true size of `words`; getsockopt(2) writes
    // no further than that, and any bytes are valid words.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut words).cast(), &raw mut len) };
    match result {
        0 if len == length_of::<[u32; N]>() => Ok(words.last().copied()),
        0 => Ok(None),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets an option to `value`, whose type must be the one that the option's man page names.
pub(super) fn set<T: Copy>(socket: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    #[expect(unsafe_code, reason = "an option no safe crate names")]
    // SAFETY: setsockopt(2) only reads, and no further than the length given, which is the true size of `value`.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const *value).cast(), length_of::<T>()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn length_of<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).expect("options are small")
}

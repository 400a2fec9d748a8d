//! Pages that are there before their first use.

use std::fs;
use std::io;

use super::ThreadError;

/// Brings every page of this process's memory in, its program's and its libraries' too, so that none is faulted in at a bad moment.
///
/// For what is mapped now: nothing that is mapped later. Where memory is locked this was done already, and costs little.
///
/// # Errors
///
/// When the kernel is older than 5.14, which does not know how.
pub fn prefault_memory() -> Result<(), ThreadError> {
    let maps = fs::read_to_string("/proc/self/maps").map_err(ThreadError::Prefault)?;
    let (mut done, mut last) = (false, None);
    for Mapping { start, length, advice } in maps.lines().filter_map(Mapping::parse) {
        #[expect(unsafe_code, reason = "nix asks for a pointer, and these are only numbers")]
        // SAFETY: madvise(2): both pieces of advice only fault pages in, and change nothing that any of them holds. Should another thread
        // have unmapped or protected the range meanwhile, the kernel refuses.
        let status = unsafe { libc::madvise(std::ptr::without_provenance_mut(start), length, advice) };
        // The kernel refuses pages of its own, such as those of its clock; they are there anyway.
        if status == 0 {
            done = true;
        } else {
            last = Some(io::Error::last_os_error());
        }
    }
    match last {
        Some(error) if !done => Err(ThreadError::Prefault(error)),
        _ => Ok(()),
    }
}

/// A line of /proc/self/maps, and how its pages are brought in.
#[derive(Debug, Eq, PartialEq)]
struct Mapping {
    start: usize,
    length: usize,
    advice: libc::c_int,
}

impl Mapping {
    /// `None` for what this process may not touch, or shares with others.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        let advice = match fields.next()?.as_bytes() {
            [b'r', b'w', _, b'p'] => libc::MADV_POPULATE_WRITE,
            [b'r', b'-', _, b'p'] => libc::MADV_POPULATE_READ,
            _ => return None,
        };
        Some(Self { start, length: end.checked_sub(start)?, advice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::thread_usage;

    #[test]
    fn what_may_be_touched_is_told_by_its_letters() {
        let advice = |line| Mapping::parse(line).map(|mapping| (mapping.start, mapping.length, mapping.advice));
        let (read, write) = (libc::MADV_POPULATE_READ, libc::MADV_POPULATE_WRITE);
        assert_eq!(advice("1000-3000 rw-p 00000000 00:00 0  [heap]"), Some((0x1000, 0x2000, write)));
        assert_eq!(advice("1000-2000 r-xp 00000000 08:01 7  /bin/tp"), Some((0x1000, 0x1000, read)));
        assert_eq!(advice("1000-2000 ---p 00000000 00:00 0"), None);
        assert_eq!(advice("1000-2000 rw-s 00000000 00:05 9  /dev/x"), None);
        assert_eq!(advice("nonsense"), None);
    }

    #[test]
    fn memory_that_was_never_used_is_there() {
        let pages = 1_000;
        let mut memory = vec![0_u8; pages * 4_096];
        let before = thread_usage().unwrap().minor_faults;
        if let Err(error) = prefault_memory() {
            assert!(error.to_string().contains("5.14"), "{error}");
            return;
        }
        let ready = thread_usage().unwrap().minor_faults;
        memory.iter_mut().step_by(4_096).for_each(|byte| *byte = std::hint::black_box(1));
        let faults = thread_usage().unwrap().minor_faults - ready;
        // Other tests take memory meanwhile, and the allocator may be at work.
        assert!(faults < 50, "{faults} of {pages}; {before} before");
    }
}

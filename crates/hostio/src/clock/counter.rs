//! The processor's own counter, by one instruction.

use super::ClockKind;

/// Which clock this architecture's counter makes; `None` where we know none.
pub(super) const KIND: Option<ClockKind> = if cfg!(target_arch = "x86_64") {
    Some(ClockKind::Tsc)
} else if cfg!(target_arch = "aarch64") {
    Some(ClockKind::ArmCounter)
} else {
    None
};

/// The counter, in its own ticks.
// No fence: it would cost as much as the read, and the few nanoseconds by which the processor may move the read lie below
// what a system call beside it takes.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn read() -> u64 {
    #[expect(unsafe_code, reason = "the time stamp counter has no safe name")]
    // SAFETY: RDTSC is in every x86-64 processor and touches no memory; Linux lets user space run it (a process that has
    // forbidden itself by prctl(PR_SET_TSC) gets a signal, not undefined behaviour).
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
}

/// The counter, in its own ticks.
// No barrier (`isb`): see the x86 reader above.
#[cfg(target_arch = "aarch64")]
#[inline]
pub(super) fn read() -> u64 {
    let ticks: u64;
    #[expect(unsafe_code, reason = "the generic counter has no other name")]
    // SAFETY: Linux sets CNTKCTL_EL1.EL0VCTEN, so EL0 may read the virtual counter; the instruction touches no memory, no
    // stack and no flags, and writes the one register named.
    unsafe {
        core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
    }
    ticks
}

/// No counter: never read, since [`KIND`] is `None` here.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn read() -> u64 {
    0
}

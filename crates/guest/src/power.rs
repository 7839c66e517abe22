//! Switching the kernel off.

use nix::sys::reboot::{RebootMode, reboot};

/// Writes everything to its files and switches the kernel off.
pub fn off() -> ! {
    nix::unistd::sync();
    let refused = reboot(RebootMode::RB_POWER_OFF);
    panic!("the first program must be able to switch its kernel off: {refused:?}");
}

//! Switching the kernel off.

use crate::engine_device::EngineDevice;
use crate::failure::Failure;
use nix::sys::reboot::{RebootMode, reboot};
use std::sync::Once;

/// Writes everything to its files and switches the kernel off.
pub fn off() -> ! {
    nix::unistd::sync();
    let refused = reboot(RebootMode::RB_POWER_OFF);
    panic!("the first program must be able to switch its kernel off: {refused:?}");
}

/// Makes a panic of this program end the run like a failure.
pub fn off_on_panic(engine: &EngineDevice) {
    let engine = engine.clone();
    let once = Once::new();
    std::panic::set_hook(Box::new(move |panic| {
        // One thread reports; the others wait here until the kernel is off.
        once.call_once(|| {
            let defect = format!("this is a defect of the program inside the kernel, please report it: {panic}");
            engine.report_failure(&Failure::new(defect));
            nix::unistd::sync();
            let _ = reboot(RebootMode::RB_POWER_OFF);
        });
    }));
}

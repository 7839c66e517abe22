//! The end of the kernel.

use crate::engine::Engine;
use crate::failure::Failure;
use nix::sys::reboot::{RebootMode, reboot};
use std::sync::Once;

/// Writes everything to its files and switches the kernel off.
pub fn off() -> ! {
    nix::unistd::sync();
    let never = reboot(RebootMode::RB_POWER_OFF);
    panic!("the first program may switch its kernel off, but {never:?}");
}

/// A defect of this program ends the run like any failure.
pub fn off_on_panic(engine: &Engine) {
    let engine = engine.clone();
    let told = Once::new();
    std::panic::set_hook(Box::new(move |panic| {
        // Only one tells: the others wait here for the kernel's end.
        told.call_once(|| {
            let defect = format!("a defect of the program inside the kernel, please report it: {panic}");
            engine.tell_failure(&Failure::new(defect));
            nix::unistd::sync();
            let _ = reboot(RebootMode::RB_POWER_OFF);
        });
    }));
}

//! The device through which this program reports to the engine: one message with each write.

use crate::failure::Failure;
use firstlight_linux::GuestMessage;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Arc;

/// Path of the driver's device.
pub const DEVICE: &str = "/dev/firstlight";
/// Path of the kernel's log, for failures without an engine.
const LOG: &str = "/dev/kmsg";
/// Longest text of a failure, in bytes.
const LONGEST: usize = 16_384;

/// The open device.
#[derive(Clone)]
pub struct EngineDevice {
    device: Arc<Option<File>>,
}

impl EngineDevice {
    /// Opens the device. Without a device, failures go to the kernel's log.
    pub fn open() -> Self {
        EngineDevice { device: Arc::new(OpenOptions::new().write(true).open(DEVICE).ok()) }
    }

    /// Reports a message to the engine.
    pub fn report(&self, message: GuestMessage<'_>) -> Result<(), Failure> {
        let Some(mut device) = self.device.as_ref().as_ref() else {
            return Err(Failure::new(format!(
                "there is no {DEVICE}: this kernel lacks Firstlight's driver; build one by `firstlight kernel build`"
            )));
        };
        let refused = |error| Failure::new(format!("the engine refuses the message {message:?}: {error}"));
        device.write_all(&message.encode()).map_err(refused)
    }

    /// Reports why the run cannot go on: to the engine, else to the kernel's log.
    pub fn report_failure(&self, failure: &Failure) {
        let text = failure.to_string();
        let text = &text.as_bytes()[..text.len().min(LONGEST)];
        if self.report(GuestMessage::Failed(text)).is_ok() {
            return;
        }
        if let Ok(mut log) = OpenOptions::new().write(true).open(LOG) {
            let line = [b"firstlight: ", text, b"\n"].concat();
            // A failure of the log has nowhere to go.
            let _ = log.write_all(&line);
        }
    }
}

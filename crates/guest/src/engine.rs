//! The way to the engine: a device that takes one message with each write.

use crate::failure::Failure;
use firstlight_linux::Message;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Arc;

/// The driver's device.
pub const DEVICE: &str = "/dev/firstlight";
/// The kernel's log, for when there is no engine to tell.
const LOG: &str = "/dev/kmsg";
/// Longest text of a failure.
const LONGEST: usize = 16_384;

/// The engine, as the program sees it.
#[derive(Clone)]
pub struct Engine {
    device: Arc<Option<File>>,
}

impl Engine {
    /// Opens the device; without it the kernel's log takes what is told.
    pub fn open() -> Self {
        Engine { device: Arc::new(OpenOptions::new().write(true).open(DEVICE).ok()) }
    }

    /// Tells the engine something.
    pub fn tell(&self, message: Message<'_>) -> Result<(), Failure> {
        let Some(mut device) = self.device.as_ref().as_ref() else {
            return Err(Failure::new(format!(
                "there is no {DEVICE}: this kernel was built without Firstlight's driver"
            )));
        };
        let refused = |error| Failure::new(format!("the engine does not take the message {message:?}: {error}"));
        device.write_all(&message.encode()).map_err(refused)
    }

    /// Tells why the run cannot go on, in any way that works.
    pub fn tell_failure(&self, failure: &Failure) {
        let text = failure.to_string();
        let text = &text.as_bytes()[..text.len().min(LONGEST)];
        if self.tell(Message::Failed(text)).is_ok() {
            return;
        }
        if let Ok(mut log) = OpenOptions::new().write(true).open(LOG) {
            let line = [b"firstlight: ", text, b"\n"].concat();
            // Nobody is left to hear of it.
            let _ = log.write_all(&line);
        }
    }
}

//! The way to the engine: a device that takes one message with each write or, where hosts run in dilated time, a socket
//! on which the engine answers each message with an errno value.

use crate::failure::GuestFailure;
use firstlight_linux::GuestMessage;
use nix::sys::socket::{MsgFlags, recv, send};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// Path of the driver's device.
pub const DEVICE: &str = "/dev/firstlight";
/// Path of the kernel's log, for failures without an engine.
const LOG: &str = "/dev/kmsg";
/// Longest text of a failure, in bytes.
const LONGEST: usize = 16_384;

/// The open device, or the socket in its place.
#[derive(Clone)]
pub struct EngineDevice(Arc<EngineLink>);

enum EngineLink {
    None,
    Device(File),
    /// The lock lets one message at a time wait for its answer.
    Socket(Mutex<OwnedFd>),
}

impl EngineDevice {
    /// Opens the device. Without a device, failures go to the kernel's log.
    pub fn open() -> Self {
        let device = OpenOptions::new().write(true).open(DEVICE).ok();
        EngineDevice(Arc::new(device.map_or(EngineLink::None, EngineLink::Device)))
    }

    /// The engine at the other end of a socket.
    pub fn at(socket: OwnedFd) -> Self {
        EngineDevice(Arc::new(EngineLink::Socket(Mutex::new(socket))))
    }

    /// Reports a message to the engine.
    pub fn report(&self, message: GuestMessage<'_>) -> Result<(), GuestFailure> {
        let refused = |error| GuestFailure::new(format!("the engine refuses the message {message:?}: {error}"));
        match &*self.0 {
            EngineLink::None => Err(GuestFailure::new(format!(
                "there is no {DEVICE}: this kernel lacks Firstlight's driver; build one by `firstlight kernel build`"
            ))),
            EngineLink::Device(device) => (&*device).write_all(&message.encode()).map_err(refused),
            EngineLink::Socket(socket) => {
                let socket = socket.lock().unwrap_or_else(PoisonError::into_inner);
                ask(&socket, &message.encode()).map_err(refused)
            }
        }
    }

    /// Reports why the run cannot go on: to the engine, else to standard error or the kernel's log.
    pub fn report_failure(&self, failure: &GuestFailure) {
        let text = failure.to_string();
        let text = &text.as_bytes()[..text.len().min(LONGEST)];
        if self.report(GuestMessage::Failed(text)).is_ok() {
            return;
        }
        if let EngineLink::Socket(_) = &*self.0 {
            // The kernel's log is the machine's.
            return eprintln!("firstlight: {failure}");
        }
        if let Ok(mut log) = OpenOptions::new().write(true).open(LOG) {
            let line = [b"firstlight: ", text, b"\n"].concat();
            // A failure of the log has nowhere to go.
            let _ = log.write_all(&line);
        }
    }
}

/// Sends a message and waits for the answer: 0 or an errno value.
fn ask(socket: &OwnedFd, message: &[u8]) -> io::Result<()> {
    send(socket.as_raw_fd(), message, MsgFlags::MSG_NOSIGNAL)?;
    let mut answer = [0; 4];
    if recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())? != answer.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    match i32::from_ne_bytes(answer) {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

//! Packet capture: pcapng (draft-ietf-opsawg-pcapng) with nanosecond timestamps, as Wireshark opens it.

mod address;
mod headers;
#[cfg(test)]
mod round_trip;
mod writer;

pub use address::{Addresses, LINK_PREFIX};
pub use writer::{CaptureError, CaptureInterface, CaptureNetwork, CaptureWriter};

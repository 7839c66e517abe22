//! The buffers of hosts' adapters: what `[adapter]` says.

use super::error::SpecError;
use super::keys::{Key, Kind};
use super::registry::{AMOUNT, key};
use super::values::Values;
use firstlight_sim::{AdapterConfig, ReceiveConfig};

/// The keys of `[adapter]`.
pub(super) fn keys() -> Vec<Key> {
    vec![
        key(
            "adapter.send_buffer",
            AMOUNT,
            "How much a host's interface holds of what is to be sent. While it holds that much the host's stack waits, and \
             programs with it; nothing is lost",
        )
        .or_none("no limit"),
        key("adapter.drain", Kind::Rate, "The rate at which a host takes in what has arrived, over its bus")
            .or_none("at once"),
        key(
            "adapter.receive_buffer",
            AMOUNT,
            "How much waits for `adapter.drain`. More is lost; with `[pfc]` the switch is paused before that",
        )
        .or_none("with `adapter.drain`: 512kB"),
    ]
}

/// What the table says.
pub(super) fn read(values: &Values) -> Result<AdapterConfig, SpecError> {
    const BUFFER: &str = "adapter.receive_buffer";
    let buffer = values.size_opt(BUFFER);
    let drain = values.rate_opt("adapter.drain");
    if buffer.is_some() && drain.is_none() {
        let text = "a host takes in at once what arrives, so nothing waits: give adapter.drain, or take this out";
        return Err(values.problem(BUFFER, text).into());
    }
    let receive = drain.map(|drain| ReceiveConfig { drain, buffer: buffer.unwrap_or(ReceiveConfig::BUFFER) });
    Ok(AdapterConfig { send_buffer: values.size_opt("adapter.send_buffer"), receive })
}

//! The buffers of hosts' adapters: what `[adapter]` says.

use super::error::SpecError;
use super::keys::{Key, Kind};
use super::network::Network;
use super::pfc;
use super::registry::{AMOUNT, key};
use super::values::Values;
use firstlight_net::pfc::PfcLimits;
use firstlight_sim::{AdapterConfig, ReceiveConfig};

const BUFFER: &str = "adapter.receive_buffer";

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
    let buffer = values.size_opt(BUFFER);
    let drain = values.rate_opt("adapter.drain");
    if buffer.is_some() && drain.is_none() {
        let text = "a host takes in at once what arrives, so nothing waits: give adapter.drain, or take this out";
        return Err(values.problem(BUFFER, text).into());
    }
    let receive = drain.map(|drain| ReceiveConfig { drain, buffer: buffer.unwrap_or(ReceiveConfig::BUFFER) });
    Ok(AdapterConfig { send_buffer: values.size_opt("adapter.send_buffer"), receive })
}

/// Refuses receive buffers that hold no packet, or not what can come once their switch is to be paused.
pub(super) fn check(values: &Values, network: &Network) -> Result<(), SpecError> {
    let Some(ReceiveConfig { buffer, .. }) = network.interface().adapter.receive else { return Ok(()) };
    let largest = pfc::largest_packet(values);
    if buffer < largest {
        let text = format!("{buffer} cannot hold a packet of {largest}: use at least that");
        return Err(values.problem(BUFFER, text).into());
    }
    if values.flag("pfc.allow_loss") {
        return Ok(());
    }
    let limits = network.limits_of_adapters();
    let lacking: Vec<_> = limits.iter().enumerate().filter(|(_, limits)| limits.missing().get() > 0).collect();
    let most = lacking.iter().max_by_key(|(host, limits)| (limits.missing(), std::cmp::Reverse(*host)));
    let Some((host, PfcLimits { headroom, response, .. })) = most else { return Ok(()) };
    let others = if lacking.len() > 1 { format!(" (and {} links more)", lacking.len() - 1) } else { String::new() };
    let text = format!(
        "on the link host{host}.port{others} {} are missing: {buffer} cannot hold the headroom of {headroom} that can come once \
         the host has the switch paused (three packets, a pause frame, the cable both ways and a response of {response}): use at \
         least {headroom}, or say pfc.allow_loss = true",
        limits[*host].missing(),
    );
    Err(values.problem(BUFFER, text).into())
}

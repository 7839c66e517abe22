//! DX's experiment on its own measurement chain (section 5.1, Figs. 6 to 8): two hosts back to back, a flow that fills
//! the link between them, and what each stage makes of an RTT that "should remain unchanged".
//!
//! No engine is needed, since every stage keeps the order of packets: each packet is followed through all stages, and
//! its ACK on the way back, before the next packet.
//!
//! The sender is a TCP whose window is full: it hands over 64 KB at a time, when the ACK of the 64 KB comes that were a
//! window earlier. Packets in the receiving stacks are missing in the interface's queue, and the other way round: by
//! Little's law the two add up to the window. That is the paper's burst error: timestamps that are taken before the
//! queue show its changes as delay. The receiver answers every other packet.

mod outcome;
mod path;
mod report;

pub use outcome::run;
pub use report::{ChainReport, Spread};

use firstlight_net::interface::{ChainConfig, ClockConfig, StackDelays};
use firstlight_units::{Bytes, Rate, Span, Time};
use path::ChainPath;

/// Two hosts, a link and a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasurementChain {
    /// How both hosts take timestamps. With [`ChainConfig::Kernel`] they are those of TCP itself, above `stack`.
    pub chain: ChainConfig,
    /// The hosts' clocks.
    pub clocks: ClockConfig,
    /// The hosts' stacks, between TCP and the interface: they decide when the flow's bursts come, whatever stage takes
    /// the timestamps.
    pub stack: StackDelays,
    /// The link.
    pub rate: Rate,
    /// The link's propagation delay.
    pub delay: Span,
    /// Size of a data packet.
    pub packet: u16,
    /// Size of an ACK.
    pub ack: u16,
    /// The burst that TCP hands over at a time, in whole packets.
    pub burst: Bytes,
    /// The window, in whole bursts.
    pub window: Bytes,
}

impl MeasurementChain {
    /// The paper's testbed, with these timestamps. From the paper: 10 Gb/s, bursts of 64 KB, the stack's two numbers.
    /// Ours: ACKs of 68 bytes, which is what headers with DX's option take here; 5 m of cable; and a window of 512
    /// KiB. That one is half-way between the least and the largest RTT that the paper's kernel sees, 23 and 733 us,
    /// at the link's rate (472 KB), in whole bursts.
    pub fn back_to_back(chain: ChainConfig) -> Self {
        let stack = if let ChainConfig::Kernel(stack) = chain { stack } else { StackDelays::default() };
        MeasurementChain {
            chain,
            clocks: ClockConfig::default(),
            stack,
            rate: Rate::from_gbps(10),
            delay: Span::from_ns(25),
            packet: 1500,
            ack: 68,
            burst: Bytes::new(64 << 10),
            window: Bytes::new(512 << 10),
        }
    }
}

/// Sends `packets` packets and reports their timestamps without the first two windows. `seed` decides all noise; the
/// stacks' noise is the same for every stage that takes timestamps.
///
/// # Panics
/// When a packet or an ACK has no bytes, the rate is zero, or a burst holds no packet.
pub fn measurement_chain(config: &MeasurementChain, packets: u64, seed: u64) -> ChainReport {
    let mut path = ChainPath::new(config, seed);
    let burst = config.burst.get() / u64::from(config.packet);
    assert!(burst > 0, "a burst holds at least one packet");
    // A window holds at least two bursts: with an ACK for every other packet, the last packet of a burst is
    // acknowledged with the next burst.
    let window = (config.window.get() / config.burst.get()).max(2) as usize;
    let mut report = ChainReport::default();
    // When TCP learnt of the end of each of the last bursts.
    let mut acked = vec![Time::ZERO; window];
    for number in 0..packets {
        let (nth, place) = ((number / burst) as usize, number % burst);
        let measured = path.packet(acked[nth % window], number % 2 == 1);
        if let Some(exchange) = &measured.exchange {
            if place == 0 {
                acked[(nth + window - 1) % window] = exchange.heard;
            }
            if place + 1 == burst {
                acked[nth % window] = exchange.heard;
            }
        }
        if nth >= 2 * window {
            report.add(&measured);
        }
    }
    report.busy = path.busy();
    report
}

#[cfg(test)]
mod tests;

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
mod second_flow;

pub use outcome::run;
pub use report::{ChainReport, Spread};

use firstlight_net::interface::{ChainConfig, ClockConfig, StackDelays};
use firstlight_spec::HostQueue;
use firstlight_units::{Bytes, Rate, Span, Time};
use path::{ChainPath, Crossing};

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
    /// The receiving driver joins packets that TCP gets at once, and TCP answers them with one ACK.
    pub receive_offload: bool,
    /// Where packets of a second flow wait, if there is one.
    pub second_flow: Option<HostQueue>,
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
            receive_offload: false,
            second_flow: None,
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
    // When TCP learnt of the end of each of the last bursts, and how many ends it knows.
    let (mut acked, mut known) = (vec![Time::ZERO; window], 0);
    let mut batch = Batch::default();
    let counts = |number: u64| number / burst >= 2 * window as u64;
    for number in 0..packets {
        let data = path.packet(acked[(number / burst) as usize % window]);
        if counts(number) {
            report.add(&data);
        } else {
            path.second_flow_waits();
        }
        // Without receive offload TCP answers every other packet. With it TCP answers a batch, which is over when the
        // next packet belongs to another one.
        let answered = if config.receive_offload {
            let over = batch.over(&data, burst);
            batch.add(data, number);
            over
        } else {
            (number % 2 == 1).then(|| Answered { last: data, number, one_way: data.one_way() })
        };
        let Some(Answered { last, number, one_way }) = answered else { continue };
        let exchange = path.answer(last.delivered);
        while (known as u64 + 1) * burst <= number + 1 {
            acked[known % window] = exchange.delivered;
            known += 1;
        }
        if counts(number) {
            report.answer(&last, &exchange, one_way);
        }
    }
    report.second_flow_waits_ns = path.second_flow_waits();
    report.busy = path.busy();
    report
}

/// What an ACK answers.
struct Answered {
    last: Crossing,
    /// The number of the last packet.
    number: u64,
    /// The one-way delay that the ACK brings, in nanoseconds.
    one_way: i64,
}

/// Packets that TCP gets at once, joined to one by receive offload.
#[derive(Default)]
struct Batch {
    last: Option<(Crossing, u64)>,
    /// The sum of the one-way delays, in nanoseconds, and of how many packets.
    sum: i64,
    packets: u64,
}

impl Batch {
    /// The batch, if `next` does not belong to it: TCP gets `next` at another time, or the batch holds `most` packets.
    fn over(&mut self, next: &Crossing, most: u64) -> Option<Answered> {
        let (last, number) = self.last?;
        if next.delivered == last.delivered && self.packets < most {
            return None;
        }
        let one_way = self.sum / self.packets as i64;
        *self = Batch::default();
        Some(Answered { last, number, one_way })
    }

    fn add(&mut self, data: Crossing, number: u64) {
        self.last = Some((data, number));
        self.sum += data.one_way();
        self.packets += 1;
    }
}

#[cfg(test)]
mod tests;

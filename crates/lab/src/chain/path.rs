//! What a packet goes through from TCP to TCP, and its ACK on the way back.

use super::MeasurementChain;
use super::report::apart;
use super::second_flow::SecondFlow;
use firstlight_net::Serializer;
use firstlight_net::interface::{ChainConfig, Clock, Stack, Stamper};
use firstlight_sim::stream;
use firstlight_units::{Span, Time};

/// One host: its stack, its interface's transmitter, and its timestamps.
struct ChainHost {
    stack: Stack,
    free: Time,
    link: Serializer,
    stamper: Stamper,
    second_flow: Option<SecondFlow>,
    /// The kernel takes the stamps.
    kernel: bool,
}

/// The two stamps of one packet.
#[derive(Clone, Copy)]
pub(super) struct Crossing {
    pub(super) sent: u32,
    pub(super) received: u32,
    /// When the receiver's TCP gets it.
    pub(super) delivered: Time,
}

impl Crossing {
    /// The packet's one-way delay by the stamps, in nanoseconds.
    pub(super) fn one_way(&self) -> i64 {
        apart(self.received, self.sent)
    }
}

/// An ACK has come.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    pub(super) ack: Crossing,
    /// When the sender's TCP gets it.
    pub(super) delivered: Time,
}

/// Both hosts and the link.
pub(super) struct ChainPath {
    sender: ChainHost,
    receiver: ChainHost,
    delay: Span,
    packet: u16,
    ack: u16,
    sent: Span,
}

impl ChainHost {
    fn new(config: &MeasurementChain, name: &str, seed: u64) -> Self {
        let link = Serializer::new(config.rate, 1);
        let clock = Clock::draw(&config.clocks, &mut stream(seed, name, "clock"));
        let kernel = matches!(config.chain, ChainConfig::Kernel(_));
        // The kernel's stamps are read off the clock when TCP has the packet.
        let chain = if kernel { ChainConfig::Ideal } else { config.chain };
        ChainHost {
            stack: Stack::new(config.stack, stream(seed, name, "stack")),
            free: Time::ZERO,
            link,
            stamper: Stamper::new(chain, clock, link, stream(seed, name, "stamps")),
            second_flow: None,
            kernel,
        }
    }

    /// Sends a packet that TCP hands over. Returns its stamp and when its last bit has left.
    fn send(&mut self, at: Time, size: u16) -> (u32, Time) {
        let queued = self.stack.send(at);
        if let Some(second) = &mut self.second_flow {
            self.free = second.send_before(queued, self.free, self.link.time(size));
        }
        let starts = queued.max(self.free);
        self.free = starts + self.link.time(size);
        let stamp =
            if self.kernel { self.stamper.clock().read(at) } else { self.stamper.on_send(queued, starts, size) };
        (stamp, self.free)
    }

    /// Receives a packet whose last bit arrives. Returns its stamp and when TCP has it.
    fn receive(&mut self, arrives: Time, size: u16) -> (u32, Time) {
        let delivered = self.stack.receive(arrives);
        let stamp =
            if self.kernel { self.stamper.clock().read(delivered) } else { self.stamper.on_receive(arrives, size) };
        (stamp, delivered)
    }
}

fn cross(from: &mut ChainHost, to: &mut ChainHost, at: Time, size: u16, delay: Span) -> Crossing {
    let (sent, left) = from.send(at, size);
    let (received, delivered) = to.receive(left + delay, size);
    Crossing { sent, received, delivered }
}

impl ChainPath {
    pub(super) fn new(config: &MeasurementChain, seed: u64) -> Self {
        let second_flow = config.second_flow.map(SecondFlow::new);
        ChainPath {
            sender: ChainHost { second_flow, ..ChainHost::new(config, "sender", seed) },
            receiver: ChainHost::new(config, "receiver", seed),
            delay: config.delay,
            packet: config.packet,
            ack: config.ack,
            sent: Span::ZERO,
        }
    }

    /// The sender's TCP hands over a data packet.
    pub(super) fn packet(&mut self, at: Time) -> Crossing {
        self.sent += self.sender.link.time(self.packet);
        cross(&mut self.sender, &mut self.receiver, at, self.packet, self.delay)
    }

    /// The receiver's TCP hands over an ACK.
    pub(super) fn answer(&mut self, at: Time) -> Exchange {
        let ack = cross(&mut self.receiver, &mut self.sender, at, self.ack, self.delay);
        Exchange { ack, delivered: ack.delivered }
    }

    /// How long packets of the second flow have waited since the last call, in nanoseconds.
    pub(super) fn second_flow_waits(&mut self) -> Vec<i64> {
        self.sender.second_flow.as_mut().map(SecondFlow::take_waits).unwrap_or_default()
    }

    /// The share of the time in which the sender's link was busy, 0 to 1.
    pub(super) fn busy(&self) -> f64 {
        self.sent.as_secs_f64() / self.sender.free.as_secs_f64()
    }
}

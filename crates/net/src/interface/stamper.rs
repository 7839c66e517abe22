//! Takes the timestamps of one host's interface.
//!
//! The fabric reports what happened on the link. The stamper computes afterwards when the host's driver, hardware and
//! polling loops saw it. So timestamps never change when packets are sent: an interface that
//! the fabric keeps busy was given its packets in time, by the round of the loop before each one's first bit.

use super::calibration::Spacing;
use super::clock::nanoseconds;
use super::dma::Dma;
use super::noise::{Xoshiro256PlusPlus, normal};
use super::poll::{ReceiveLoop, SendLoop, Turns};
use super::{ChainConfig, Clock, PollConfig, Stack, StackDelays};
use crate::Serializer;
use firstlight_units::Time;

/// The timestamps of one host's interface. Each direction's calls come in the order of the packets on the wire.
#[derive(Clone, Debug)]
pub struct Stamper {
    chain: ChainConfig,
    clock: Clock,
    link: Serializer,
    stack: Stack,
    /// Randomness of sending; each direction has its own, so that no received packet changes what is sent.
    send_rng: Xoshiro256PlusPlus,
    receive_rng: Xoshiro256PlusPlus,
    send_loop: SendLoop,
    receive_loop: ReceiveLoop,
    turns: [Turns; 2],
    dma: [Dma; 2],
    spacing: [Spacing; 2],
    /// The kernel's last stamp of a packet to send, in true picoseconds.
    descended: i128,
}

const SEND: usize = 0;
const RECEIVE: usize = 1;

impl Stamper {
    /// A host's timestamps on an interface to a link of these serialization times, both ways. The noise comes from
    /// `rng`.
    pub fn new(chain: ChainConfig, clock: Clock, link: Serializer, rng: Xoshiro256PlusPlus) -> Self {
        let (mut receive_rng, send_rng) = (rng.clone(), rng);
        receive_rng.jump();
        let mut stack_rng = receive_rng.clone();
        stack_rng.jump();
        let stack = match chain {
            ChainConfig::Kernel(config) => config,
            _ => StackDelays::default(),
        };
        Stamper {
            chain,
            clock,
            link,
            stack: Stack::new(stack, stack_rng),
            send_rng,
            receive_rng,
            send_loop: SendLoop::default(),
            receive_loop: ReceiveLoop::default(),
            turns: Default::default(),
            dma: Default::default(),
            spacing: Default::default(),
            descended: i128::MIN,
        }
    }

    /// The host's clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The stamp of a packet of `size` bytes that the host handed to the interface at `queued` and whose first bit
    /// leaves it at `starts`: nanoseconds of the host's clock, modulo 2^32.
    pub fn on_send(&mut self, queued: Time, starts: Time, size: u16) -> u32 {
        debug_assert!(queued <= starts, "a packet is sent after it was queued");
        let at = match self.chain {
            ChainConfig::Ideal | ChainConfig::Gaussian { .. } => ps(starts),
            ChainConfig::Kernel(_) => self.descent(queued),
            ChainConfig::Software { poll, .. } => {
                let pushed = self.pushed(queued, starts, size, &poll);
                ps(self.turns[SEND].take(pushed, &poll).min(starts))
            }
            ChainConfig::Hardware { poll, dma, .. } => {
                let pushed = self.pushed(queued, starts, size, &poll);
                ps(self.dma[SEND].complete(pushed, size, &dma, &mut self.send_rng))
            }
        };
        let mut local = self.clock.local(at);
        if self.chain.remedies().calibration {
            local = self.spacing[SEND].sending(local, self.link.time(size));
        }
        nanoseconds(local)
    }

    /// The stamp of a packet of `size` bytes whose last bit arrives at the interface at `arrives`.
    pub fn on_receive(&mut self, arrives: Time, size: u16) -> u32 {
        let at = match self.chain {
            ChainConfig::Ideal => ps(arrives),
            ChainConfig::Gaussian { deviation } => ps(arrives) + i128::from(normal(&mut self.receive_rng, deviation)),
            ChainConfig::Kernel(_) => ps(self.stack.receive(arrives)),
            ChainConfig::Software { poll, .. } => {
                let got = self.receive_loop.round(arrives, &poll, &mut self.receive_rng);
                ps(self.turns[RECEIVE].take(got, &poll))
            }
            ChainConfig::Hardware { dma, .. } => {
                ps(self.dma[RECEIVE].complete(arrives, size, &dma, &mut self.receive_rng))
            }
        };
        let mut local = self.clock.local(at);
        if self.chain.remedies().calibration {
            local = self.spacing[RECEIVE].receiving(local, self.link.time(size));
        }
        nanoseconds(local)
    }

    /// When TCP stamped a packet that the interface got at `queued`; TCP's stamps are in order.
    fn descent(&mut self, queued: Time) -> i128 {
        let delay = self.stack.descent(queued);
        self.descended = self.descended.max(ps(queued) - i128::from(delay.as_ps()));
        self.descended
    }

    /// The time at which the driver pushed a packet to the interface. Without a token bucket the driver does so when it
    /// gets the packet. With a token bucket it does so in the last round before the interface is free for the packet. A
    /// round pushes a limited number of packets, and the last of them waits for all others.
    fn pushed(&mut self, queued: Time, starts: Time, size: u16, poll: &PollConfig) -> Time {
        if !self.chain.remedies().token_bucket {
            return queued;
        }
        let round = self.send_loop.round(starts, poll, &mut self.send_rng);
        let others = self.link.time(size) * u64::from(poll.most.saturating_sub(1));
        let earliest = Time::from_ps(starts.as_ps().saturating_sub(others.as_ps()));
        round.max(earliest).max(queued)
    }
}

fn ps(at: Time) -> i128 {
    i128::from(at.as_ps())
}

#[cfg(test)]
mod tests {
    use super::super::{DmaConfig, Remedies};
    use super::*;
    use firstlight_units::{Rate, Span};
    use rand_xoshiro::rand_core::SeedableRng;

    const MTU: u16 = 1500;

    fn stamper(chain: ChainConfig) -> Stamper {
        on_clock(chain, Clock::default())
    }

    fn on_clock(chain: ChainConfig, clock: Clock) -> Stamper {
        let link = Serializer::new(Rate::from_gbps(10), 1);
        Stamper::new(chain, clock, link, Xoshiro256PlusPlus::seed_from_u64(1))
    }

    const fn ns(ns: u64) -> Time {
        Time::from_ps(ns * 1_000)
    }

    /// A driver whose loops are always there and take no time.
    fn quick(remedies: Remedies) -> ChainConfig {
        let poll = PollConfig { interval: Span::ZERO, packet: Span::ZERO, most: 10 };
        ChainConfig::Software { poll, remedies }
    }

    /// Stamps of a burst of `n` full packets that is handed over at 10 us.
    fn burst<const N: usize>(stamper: &mut Stamper) -> [u32; N] {
        std::array::from_fn(|k| stamper.on_send(ns(10_000), ns(10_000 + 1_200 * k as u64), MTU))
    }

    #[test]
    fn ideal_stamps_are_the_clocks_readings_on_the_wire() {
        let mut host = on_clock(ChainConfig::Ideal, Clock::new(500, 1_000_000));
        assert_eq!(host.on_send(ns(1), ns(1_000_000), MTU), 1_001_000);
        assert_eq!(host.on_receive(Time::from_ps(1_000_000_499), 40), 1_001_000);
        assert_eq!(host.on_receive(Time::from_ps(1_000_000_500), 40), 1_001_001);
    }

    #[test]
    fn in_a_burst_the_kth_packet_is_stamped_k_packets_too_early() {
        let mut host = stamper(quick(Remedies::NONE));
        assert_eq!(burst(&mut host), [10_000; 43]);
        // 64 KB in one burst: the last of 43 packets is off by 42 x 1.2 us, "as large as 50 us".
        assert_eq!(10_000 + 42 * 1_200 - burst::<43>(&mut host)[42], 50_400);
        // A loop that takes 67 ns for each spreads them by so much.
        let poll = PollConfig { interval: Span::ZERO, ..PollConfig::default() };
        let mut host = stamper(ChainConfig::Software { poll, remedies: Remedies::NONE });
        assert_eq!(burst(&mut host), [10_000, 10_067, 10_134]);
        // A link that is done sooner waits for nothing: no packet is stamped after its first bit.
        let stamps = [20_000, 20_042, 20_084].map(|starts| host.on_send(ns(20_000), ns(starts), 52));
        assert_eq!(stamps, [20_000, 20_042, 20_084]);
    }

    #[test]
    fn the_token_bucket_takes_the_burst_apart() {
        let mut host = stamper(quick(Remedies::BUCKET));
        assert_eq!(burst(&mut host), [10_000, 11_200, 12_400, 13_600]);
        // A loop that never ran again has pushed ten packets: the one that is sent is the last of them.
        let poll = PollConfig { interval: Span::from_secs(1000), packet: Span::ZERO, most: 10 };
        let mut host = stamper(ChainConfig::Software { poll, remedies: Remedies::BUCKET });
        let stamps = burst::<14>(&mut host);
        assert_eq!(stamps[..10], [10_000; 10]);
        assert_eq!(stamps[10..], [11_200, 12_400, 13_600, 14_800]);
    }

    #[test]
    fn calibration_spaces_a_burst_as_the_wire_does() {
        let mut host = stamper(quick(Remedies { token_bucket: false, calibration: true }));
        assert_eq!(burst(&mut host), [10_000, 11_200, 12_400, 13_600]);
        // The short packet of 80 ns is on the wire before the next, and after an idle line nothing is corrected.
        assert_eq!(host.on_send(ns(10_000), ns(14_800), 100), 14_800);
        assert_eq!(host.on_send(ns(10_000), ns(14_880), MTU), 14_880);
        assert_eq!(host.on_send(ns(20_000), ns(20_000), MTU), 20_000);
        let stamps = [MTU, 100, MTU].map(|size| host.on_receive(ns(30_000), size));
        assert_eq!(stamps, [30_000, 30_080, 31_280]);
    }

    #[test]
    fn a_batch_is_received_under_nearly_one_stamp() {
        let poll = PollConfig { interval: Span::from_us(100), ..PollConfig::default() };
        let mut host = stamper(ChainConfig::Software { poll, remedies: Remedies::NONE });
        let stamps: Vec<u32> = (0..1000).map(|k| host.on_receive(ns(1_200 * k), MTU)).collect();
        let near = stamps.windows(2).filter(|pair| pair[1] - pair[0] == 67).count();
        assert!(near > 950, "all but the first of each batch: {near}");
        assert!((0..).zip(&stamps).all(|(k, &stamp)| stamp >= 1_200 * k));
    }

    #[test]
    fn hardware_stamps_a_batch_at_the_speed_of_the_bus() {
        let poll = PollConfig { interval: Span::from_secs(1000), ..PollConfig::default() };
        let dma = DmaConfig { rate: Rate::from_gbps(50), jitter: Span::ZERO };
        let chain = |remedies| ChainConfig::Hardware { poll, dma, remedies };
        assert_eq!(burst(&mut stamper(chain(Remedies::BUCKET))), [10_240, 10_480, 10_720]);
        assert_eq!(burst(&mut stamper(chain(Remedies::ALL))), [10_240, 11_440, 12_640]);
        let mut host = stamper(chain(Remedies::ALL));
        assert_eq!([1_200, 2_400, 9_000].map(|at| host.on_receive(ns(at), MTU)), [1_440, 2_640, 9_240]);
    }

    #[test]
    fn the_kernel_stamps_above_the_stack_and_before_the_queue() {
        let still = StackDelays { least: Span::from_us(5), send: Span::ZERO, receive: Span::ZERO };
        let mut host = stamper(ChainConfig::Kernel(still));
        assert_eq!(burst(&mut host), [5_000, 5_000]);
        assert_eq!(host.on_receive(ns(20_000), MTU), 25_000);
        // The stamp of a packet on its way down at the start of the run is from before it.
        assert_eq!(stamper(ChainConfig::Kernel(still)).on_send(ns(0), ns(0), MTU), 0u32.wrapping_sub(5_000));
        let mut host = stamper(ChainConfig::Kernel(StackDelays { send: Span::from_us(40), ..still }));
        let stamps: Vec<u32> = (10..1000).map(|k| host.on_send(ns(k * 50_000), ns(k * 50_000), MTU)).collect();
        assert!(stamps.windows(2).all(|pair| pair[0] <= pair[1]), "the stack keeps the order");
    }

    #[test]
    fn gaussian_noise_is_on_arrivals_alone() {
        let mut host = stamper(ChainConfig::Gaussian { deviation: Span::from_ns(1_200) });
        assert_eq!(burst(&mut host), [10_000, 11_200]);
        let errors: Vec<f64> =
            (1..20_000).map(|k| f64::from(host.on_receive(ns(10_000 * k), MTU)) - 1e4 * k as f64).collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let deviation = (errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64).sqrt();
        assert!(mean.abs() < 30.0 && (deviation - 1_200.0).abs() < 20.0, "{mean} {deviation}");
    }

    #[test]
    fn the_directions_are_apart_and_repeat() {
        let chain = ChainConfig::hardware(Remedies::ALL);
        let alone = burst::<20>(&mut stamper(chain));
        let mut host = stamper(chain);
        (0..7).for_each(|k| _ = host.on_receive(ns(k * 5_000), MTU));
        assert_eq!(burst(&mut host), alone);
        // The delays of one direction are independent of those of the other.
        let poll = PollConfig { packet: Span::ZERO, ..PollConfig::default() };
        let mut host = stamper(ChainConfig::Software { poll, remedies: Remedies::BUCKET });
        let mut waits = |ms: u64| {
            let at = ms * 1_000_000;
            let (sent, received) = (host.on_send(ns(at - 500_000), ns(at), MTU), host.on_receive(ns(at), MTU));
            (at - u64::from(sent), u64::from(received) - at)
        };
        // Rounding up and down may part equal waits by a nanosecond.
        let alike = (1..100).map(&mut waits).filter(|(sent, received)| sent.abs_diff(*received) <= 1).count();
        assert!(alike < 10, "{alike}");
    }
}

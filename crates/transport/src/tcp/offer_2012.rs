//! The receive buffer as kernels of 2012 tuned it (`tcp.autotune = "2012"`): for how much payload it is to have room.
//! What today's kernels do is in `offer.rs`.
//!
//! - **Growth**: dynamic right-sizing (Fisk and Feng, "Dynamic right-sizing in TCP", LACSI 2001). The receiver counts
//!   what the program reads in a round trip. The buffer has room for twice the most of it, because a sender in slow
//!   start doubles its window meanwhile. It never shrinks, and makes no room ahead of a sender that speeds up.
//! - **Round trips**: from the timestamps that full segments echo (RFC 7323), each new one counted for an eighth (RFC
//!   6298). Without timestamps: the least time in which a whole window arrives (Fisk and Feng).
//! - **Clock**: round trips are counted in ticks (`tcp.tick`), and one of less than a tick takes one. Linux has counted
//!   microseconds since 4.13, of 2017. So an empty network's buffer is tuned to what arrives in a tick.
//! - **Size**: 87,380 bytes of memory at first, 4 MiB at most unless `tcp.receive_window` is given, and three quarters
//!   of it for payload: `tcp_rmem` and `tcp_adv_win_scale` in `ip-sysctl.txt` of Linux 3.2.
//! - **Sender**: Semke, Mahdavi and Mathis ("Automatic TCP buffer tuning", SIGCOMM 1998) give a connection twice its
//!   congestion window as buffer, and so does today's send buffer (`queue.rs`), which stays.
//!
//! Deviations: how the window of these kernels grew within the buffer, and how much of it their packets took, is not
//! documented; both are today's. No kernel of that time can be built here to measure it.

use firstlight_units::{Bytes, Span, Time};

/// Memory of the buffer when a connection begins, in bytes.
pub(super) const FIRST: u64 = 87_380;
/// The part of the memory that is for payload, in 1/256.
pub(super) const SHARE: u64 = 192;
/// The largest receive window of a kernel of 2012: what a buffer of 4 MiB holds.
pub const WINDOW_OF_2012: Bytes = Bytes::new((4 << 20) * SHARE / 256);

/// The buffer of a kernel of 2012 that has room for so large a window, in bytes.
pub(crate) fn memory_of_2012(window: u64) -> u64 {
    window * 256 / SHARE
}

/// What a receiver of 2012 knows of its connection.
#[derive(Clone, Debug)]
pub(super) struct Tuning2012 {
    /// A tick of the clock in picoseconds.
    tick: u64,
    /// The measure of a round trip in eighths of a tick; 0 before the first.
    rtt: u64,
    /// Timestamps are echoed: the time in which a window arrives does not count.
    echoes: bool,
    /// A window has arrived when this offset has, begun at this tick.
    round: (u64, u64),
    /// What the program reads is counted from this offset, since this tick.
    counted: (u64, u64),
    /// The most that the program has read in a round trip.
    most: u64,
}

impl Tuning2012 {
    /// A receiver whose clock has such ticks; a millisecond where they are exact.
    pub(super) fn new(tick: Span) -> Self {
        let tick = if tick.is_zero() { Span::from_ms(1) } else { tick }.as_ps();
        Tuning2012 { tick, rtt: 0, echoes: false, round: (0, 0), counted: (1, 0), most: 0 }
    }

    const fn ticks(&self, now: Time) -> u64 {
        now.as_ps() / self.tick
    }

    /// The connection is established.
    pub(super) fn establish(&mut self, now: Time) {
        self.counted = (1, self.ticks(now));
    }

    /// Data have arrived: everything before `next` has, and `window` bytes more may come.
    pub(super) fn on_arrival(&mut self, next: u64, window: u64, now: Time) {
        if self.echoes || next < self.round.0 {
            return;
        }
        let now = self.ticks(now);
        if self.round.0 > 0 {
            let sample = 8 * (now - self.round.1).max(1);
            self.rtt = if self.rtt == 0 { sample } else { self.rtt.min(sample) };
        }
        self.round = (next + window, now);
    }

    /// A full segment echoes a timestamp of so many milliseconds ago.
    pub(super) fn on_echo(&mut self, ago_ms: u32) {
        let sample = (Span::from_ms(ago_ms.into()).as_ps() / self.tick).max(1);
        self.rtt = if self.echoes { self.rtt - self.rtt / 8 + sample } else { 8 * sample };
        self.echoes = true;
    }

    /// The program has read everything before `next`: the payload that the buffer is to have room for, where that
    /// grows.
    pub(super) fn on_read(&mut self, next: u64, now: Time) -> Option<u64> {
        let now = self.ticks(now);
        let elapsed = now - self.counted.1;
        if self.rtt == 0 || 8 * elapsed < self.rtt {
            return None;
        }
        let read = next - std::mem::replace(&mut self.counted, (next, now)).0;
        let grows = read > self.most;
        self.most = self.most.max(read);
        grows.then_some(2 * read)
    }
}

#[cfg(test)]
mod tests {
    use super::super::offer::Offer;
    use super::super::terms::Terms;
    use super::*;
    use crate::{Autotune, TcpConfig};

    fn us(n: u64) -> Time {
        Time::ZERO + Span::from_us(n)
    }

    /// In an empty network, with a round trip of 40 us, a tick's arrivals count.
    #[test]
    fn a_short_round_trip_takes_a_tick() {
        let mut tuning = Tuning2012::new(Span::from_ms(1));
        tuning.establish(us(100));
        tuning.on_echo(0);
        assert_eq!([tuning.on_read(10_000, us(200)), tuning.on_read(30_000, us(999))], [None, None]);
        assert_eq!(tuning.on_read(40_001, us(1000)), Some(80_000));
        assert_eq!(tuning.on_read(60_001, us(2000)), None, "less than before");
        assert_eq!(tuning.on_read(110_001, us(3000)), Some(100_000));
    }

    /// When a queue makes round trips eight ticks long, the measure needs many samples.
    #[test]
    fn the_round_trip_is_smoothed() {
        let mut tuning = Tuning2012::new(Span::from_ms(1));
        (0..20).for_each(|_| tuning.on_echo(0));
        assert_eq!(tuning.rtt, 8);
        tuning.on_echo(8);
        assert_eq!(tuning.rtt, 15);
        (0..100).for_each(|_| tuning.on_echo(8));
        assert!((57..=64).contains(&tuning.rtt), "{}", tuning.rtt);
    }

    /// Without timestamps the least time in which a window arrives counts, and a longer one never does.
    #[test]
    fn without_timestamps_the_least_time_of_a_window_counts() {
        let mut tuning = Tuning2012::new(Span::from_ms(1));
        tuning.on_arrival(1, 10_000, us(0));
        assert_eq!((tuning.rtt, tuning.on_read(5000, us(3000))), (0, None));
        tuning.on_arrival(10_001, 10_000, us(4500));
        tuning.on_arrival(20_001, 10_000, us(11_000));
        assert_eq!(tuning.rtt, 8 * 4);
        assert_eq!(tuning.on_read(20_001, us(11_000)), Some(40_000));
    }

    /// The buffer has room for what the tuning asks for, within its bounds.
    #[test]
    fn the_buffer_follows() {
        let autotune = Autotune::Year2012;
        let config =
            TcpConfig { autotune, receive_window: WINDOW_OF_2012, tick: Span::from_ms(1), ..TcpConfig::default() };
        let mut offer = Offer::new(&Terms::new(&config, false));
        assert_eq!(offer.buffer().get(), FIRST);
        offer.establish(8948, us(100));
        offer.on_echo(5, || Some(5), false);
        offer.measure(8948, 20_000);
        offer.tune(300_001, 0, 0, us(1000));
        assert_eq!((offer.buffer().get(), offer.space()), (800_000, 600_000));
        offer.make_room_beyond(1_000_000);
        assert_eq!(offer.space(), 600_000);
        offer.tune(10_300_001, 0, 0, us(2000));
        assert_eq!((offer.buffer().get(), offer.space()), (4 << 20, WINDOW_OF_2012.get()));
    }
}

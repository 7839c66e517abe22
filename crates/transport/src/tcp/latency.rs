//! The option with timestamps of the network interfaces, DX's ("Accurate Latency-based Congestion Feedback for
//! Datacenters", USENIX ATC 2015, sections 2 and 4).
//!
//! The option is 14 bytes on every packet, SYN and retransmissions included, padded to 16: a number, a length and three
//! timestamps. Beside 12 bytes of RFC 7323's timestamps that leaves 12 of TCP's 40 bytes of options: one SACK block.
//! The three are enough also for an ACK on a data packet of the other direction, for the packet's t1 is the ACK's t3.
//! When a packet came (t2, t4) its receiver knows by itself. Both echoed timestamps zero: nothing is echoed.
//!
//! Which packet an ACK answers: the newest that has come since the last ACK, once. With packets in order that is the
//! paper's rule, a map from the expected ACK number: delayed ACKs discard the samples of the others, and nothing is
//! averaged as there is no receive offload. The paper leaves open what holds out of order, where ACK numbers stand
//! still: the newest is then the packet that made the ACK, a copy as good as any, for its t1 is its own.
//!
//! Only full-sized packets are measured. A short one (SYN, the end of a message) takes less time on every link that it
//! crosses, by 1.2 us at 10 Gb/s with packets of 1500 bytes: its delay would be the minimum that no other packet ever
//! comes near, and all of these would seem to have met a queue. The paper does not say. Nor does an ACK count that was
//! kept for more than a millisecond: the two clocks drift apart by 80 ns meanwhile (section 2: 40 ns per ms each),
//! which would be missing from the round trip.

use crate::cc::Latency;
use firstlight_net::{Packet, Stamps};
use firstlight_units::Span;

/// SACK blocks that a packet has room for beside the option.
pub(crate) const SACK_BLOCKS: u8 = 1;
/// An ACK that was kept for longer is no measure, in nanoseconds.
const LONGEST_KEPT: u32 = 1_000_000;

/// When a packet left its sender's interface and came to its receiver's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sample {
    sent: u32,
    received: u32,
}

/// The timestamps t1 and t2 of a data packet that has arrived.
pub(crate) fn sample(p: &Packet) -> Sample {
    let Stamps { sent, received, .. } = p.stamps();
    Sample { sent, received }
}

/// Writes a packet's t1 and t2 into `p`, which echoes them to its receiver.
pub(crate) fn echo(p: &mut Packet, sample: Sample) {
    p.set_stamps(Stamps { echo_sent: sample.sent, echo_received: sample.received, ..p.stamps() });
}

/// The latency that an ACK reports, by its four timestamps.
pub(crate) fn measured(p: &Packet) -> Option<Latency> {
    let Stamps { echo_sent: t1, echo_received: t2, sent: t3, received: t4 } = p.stamps();
    // Stamps are not exact: an ACK may seem to leave before its packet has come.
    let kept = t3.wrapping_sub(t2) as i32;
    if (t1, t2) == (0, 0) || kept.unsigned_abs() > LONGEST_KEPT {
        return None;
    }
    // Drift may make a difference of nothing negative.
    let rtt = (t4.wrapping_sub(t1).wrapping_sub(kept as u32) as i32).max(0);
    Some(Latency { one_way: t2.wrapping_sub(t1) as i32, rtt: Span::from_ns(rtt as u64) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(t1: u32, t2: u32, t3: u32, t4: u32) -> Option<Latency> {
        let mut p = Packet::default();
        p.set_stamps(Stamps { echo_sent: 0, echo_received: 0, sent: t3, received: t4 });
        echo(&mut p, Sample { sent: t1, received: t2 });
        measured(&p)
    }

    /// Figure 2 by hand: 20 us there, kept 5 us, 10 us back; the receiver's clock is 3 s ahead, and the sender's wraps
    /// on the way.
    #[test]
    fn four_timestamps_make_a_sample() {
        let (t1, ahead) = (u32::MAX - 9_999, 3_000_000_000);
        let t2 = t1.wrapping_add(20_000).wrapping_add(ahead);
        let measured = ack(t1, t2, t2.wrapping_add(5_000), t1.wrapping_add(35_000));
        let one_way = 20_000u32.wrapping_add(ahead) as i32;
        assert_eq!(measured, Some(Latency { one_way, rtt: Span::from_us(30) }));
        assert_eq!(ack(t1, t2, t2.wrapping_add(1_000_001), t1.wrapping_add(1_035_000)), None, "kept too long");
        assert_eq!(ack(0, 0, 5, 9), None, "nothing echoed");
        assert_eq!(ack(10, 10, 15, 14).map(|l| l.rtt), Some(Span::ZERO));
        // The ACK's stamp is 300 ns before that of what it answers: noise, and the sum is right.
        let early = ack(t1, t2, t2.wrapping_sub(300), t1.wrapping_add(29_700));
        assert_eq!(early, Some(Latency { one_way, rtt: Span::from_us(30) }));
        let absurd = ack(t1, t2, t2.wrapping_sub(1_000_001), t1.wrapping_add(30_000));
        assert_eq!(absurd, None, "no noise is a millisecond");
    }
}

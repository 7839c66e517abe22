//! Compares the packets that the endpoint has sent with those that the script expects.

use crate::script::{PacketSpec, TcpOption};
use crate::translate::Seen;
use firstlight_net::Ecn;
use std::fmt;

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seen { flags, seq, len, ack, window, options } = self;
        write!(f, "{flags} {seq}:{}({len}) ack {ack} win {window} {options:?}", seq.wrapping_add(*len))
    }
}

/// Puts the packets of a burst together: all but the last are of one size, and the last has the flags.
pub(crate) fn join(packets: &[Seen]) -> Option<Seen> {
    let (first, last) = (packets.first()?, packets.last()?);
    let mut next = first.seq;
    for (i, packet) in packets.iter().enumerate() {
        let size = if i + 1 < packets.len() { packet.len == first.len } else { packet.len <= first.len };
        if packet.seq != next || !size || packet.ack != first.ack || packet.options != first.options {
            return None;
        }
        next = next.wrapping_add(packet.len);
    }
    Some(Seen { seq: first.seq, len: next.wrapping_sub(first.seq), ..last.clone() })
}

/// The difference; `None` if there is none. `scale` is the number of ticks of the script's timestamps in one of the
/// endpoint's, where they are to be compared, and the first pair of them.
pub(crate) fn difference(spec: &PacketSpec, seen: &Seen, ecn: Ecn, clock: Option<(u32, u32)>) -> Option<String> {
    let differs = |what: &str, expected: &dyn fmt::Debug, found: &dyn fmt::Debug| {
        Some(format!("{what}: expected {expected:?}, found {found:?}"))
    };
    let sorted = |flags: &str| {
        let mut letters: Vec<char> = flags.chars().collect();
        letters.sort_unstable();
        letters
    };
    if sorted(&spec.flags) != sorted(&seen.flags) {
        return differs("flags", &spec.flags, &seen.flags);
    }
    if spec.seq != seen.seq {
        return differs("sequence number", &spec.seq, &seen.seq);
    }
    if spec.len != seen.len {
        return differs("payload", &spec.len, &seen.len);
    }
    if spec.ack.unwrap_or(0) != seen.ack {
        return differs("acknowledgement", &spec.ack, &seen.ack);
    }
    if spec.window.is_some_and(|window| window != seen.window) {
        return differs("window", &spec.window, &seen.window);
    }
    if spec.ecn.is_some_and(|expected| expected != ecn) {
        return differs("ECN field", &spec.ecn, &ecn);
    }
    let expected = spec.options.as_ref()?;
    let same = expected.len() == seen.options.len()
        && expected.iter().zip(&seen.options).all(|(expected, found)| is_same(expected, found, clock));
    if same { None } else { differs("options", expected, &seen.options) }
}

/// Options are compared whole, but for values of timestamps, unless these are to be compared.
fn is_same(expected: &TcpOption, found: &TcpOption, clock: Option<(u32, u32)>) -> bool {
    match (expected, found) {
        (TcpOption::Timestamp { value, echo }, TcpOption::Timestamp { value: found, echo: back }) => {
            // Rounding to ticks may differ by a few of them.
            let close = |(script, own): (u32, u32)| {
                let off = value.wrapping_sub(script).wrapping_sub(found.wrapping_sub(own)) as i32;
                off.unsigned_abs() <= TIMESTAMP_TOLERANCE
            };
            echo == back && clock.is_none_or(close)
        }
        _ => expected == found,
    }
}

/// Timestamps may differ by this number of milliseconds: the tolerance of packetdrill's times.
const TIMESTAMP_TOLERANCE: u32 = 4;

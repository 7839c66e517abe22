//! Overtakings: packets of a pair that arrive before an earlier one which took the other network.
//!
//! Each network keeps a pair's packets in order, so those in flight form runs that took the same network. A packet that
//! arrives from any run but the oldest has overtaken. At a day's end the packet path can be the shorter one (24.4 us
//! against 30 us with Etalon's numbers); at a day's start a congested packet switch can be the longer one.

use crate::meter::Carrier;
use std::collections::VecDeque;

/// One pair's packets in flight, and how many have overtaken.
#[derive(Clone, Debug, Default)]
pub(super) struct Overtakings {
    /// The network of each run, and how many of its packets are still in flight; that of the oldest run is never zero.
    runs: VecDeque<(Carrier, u32)>,
    /// Packets of the packet network that overtook.
    pub(super) by_packet_network: u64,
    /// Packets of the circuit that overtook.
    pub(super) by_circuit: u64,
}

impl Overtakings {
    #[inline]
    pub(super) fn on_sent(&mut self, carrier: Carrier) {
        match self.runs.back_mut() {
            Some((latest, in_flight)) if *latest == carrier => *in_flight += 1,
            _ => self.runs.push_back((carrier, 1)),
        }
    }

    #[inline]
    pub(super) fn on_arrival(&mut self, carrier: Carrier) {
        match self.runs.front_mut() {
            Some((oldest, in_flight)) if *oldest == carrier => {
                *in_flight -= 1;
                while self.runs.front().is_some_and(|run| run.1 == 0) {
                    self.runs.pop_front();
                }
            }
            _ => self.on_overtaking(carrier),
        }
    }

    #[cold]
    fn on_overtaking(&mut self, carrier: Carrier) {
        let run = self.runs.iter_mut().find(|run| run.0 == carrier && run.1 > 0);
        run.expect("only packets that were sent arrive").1 -= 1;
        match carrier {
            Carrier::Packet => self.by_packet_network += 1,
            Carrier::Circuit => self.by_circuit += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_exactly_those_that_pass_an_earlier_one(
            sends in prop::collection::vec((any::<bool>(), 0u32..40), 1..60),
        ) {
            let carrier = |circuit| if circuit { Carrier::Circuit } else { Carrier::Packet };
            // Packet k is sent at time 10 k and arrives so much later, but never before its network's last one.
            let mut free = [0u32; 2];
            let mut arrivals = Vec::new();
            for (k, (circuit, delay)) in sends.iter().enumerate() {
                let at = (k as u32 * 10 + 1 + delay).max(free[usize::from(*circuit)]);
                free[usize::from(*circuit)] = at;
                arrivals.push((at, *circuit, k));
            }
            let mut order = Overtakings::default();
            let mut expected = [0u64; 2];
            let mut left = arrivals.clone();
            left.sort_unstable();
            let mut left = std::collections::VecDeque::from(left);
            for k in 0..=sends.len() {
                let until = if k < sends.len() { k as u32 * 10 } else { u32::MAX };
                while left.front().is_some_and(|arrival| arrival.0 <= until) {
                    let (_, circuit, sent) = left.pop_front().unwrap();
                    expected[usize::from(circuit)] += u64::from(left.iter().any(|other| other.2 < sent));
                    order.on_arrival(carrier(circuit));
                }
                if let Some(send) = sends.get(k) {
                    order.on_sent(carrier(send.0));
                }
            }
            prop_assert_eq!([order.by_packet_network, order.by_circuit], expected);
            prop_assert!(order.runs.is_empty());
        }
    }
}

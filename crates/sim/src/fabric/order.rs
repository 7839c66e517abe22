//! Overtakings: packets of a pair that arrive before an earlier one which took the other network.
//!
//! Each network keeps a pair's packets in order, so those on their way form runs that took the same network. A packet
//! that arrives from any run but the oldest has overtaken. At a day's end the packet path can be the shorter one (24.4 us
//! against 30 us with Etalon's numbers); at a day's start a congested packet switch can be the longer one.

use crate::meter::Network;
use std::collections::VecDeque;

/// One pair's packets on their way.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// Networks and how many packets of the run are still on their way; that of the oldest run is never zero.
    runs: VecDeque<(Network, u32)>,
    /// Packets of the packet network that overtook.
    pub(super) packet_overtakings: u64,
    /// Packets of the circuit that overtook.
    pub(super) circuit_overtakings: u64,
}

impl Order {
    #[inline]
    pub(super) fn on_sent(&mut self, network: Network) {
        match self.runs.back_mut() {
            Some((latest, on_way)) if *latest == network => *on_way += 1,
            _ => self.runs.push_back((network, 1)),
        }
    }

    #[inline]
    pub(super) fn on_arrival(&mut self, network: Network) {
        match self.runs.front_mut() {
            Some((oldest, on_way)) if *oldest == network => {
                *on_way -= 1;
                while self.runs.front().is_some_and(|run| run.1 == 0) {
                    self.runs.pop_front();
                }
            }
            _ => self.on_overtaking(network),
        }
    }

    #[cold]
    fn on_overtaking(&mut self, network: Network) {
        let run = self.runs.iter_mut().find(|run| run.0 == network && run.1 > 0);
        run.expect("only packets that were sent arrive").1 -= 1;
        match network {
            Network::Packet => self.packet_overtakings += 1,
            Network::Circuit => self.circuit_overtakings += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_exactly_those_that_pass_an_earlier_one(sends in prop::collection::vec((any::<bool>(), 0u32..40), 1..60)) {
            let network = |circuit| if circuit { Network::Circuit } else { Network::Packet };
            // Packet k is sent at time 10 k and arrives so much later, but never before its network's last one.
            let mut free = [0u32; 2];
            let mut arrivals = Vec::new();
            for (k, (circuit, delay)) in sends.iter().enumerate() {
                let at = (k as u32 * 10 + 1 + delay).max(free[usize::from(*circuit)]);
                free[usize::from(*circuit)] = at;
                arrivals.push((at, *circuit, k));
            }
            let mut order = Order::default();
            let mut expected = [0u64; 2];
            let mut left = arrivals.clone();
            left.sort_unstable();
            let mut left = std::collections::VecDeque::from(left);
            for k in 0..=sends.len() {
                let until = if k < sends.len() { k as u32 * 10 } else { u32::MAX };
                while left.front().is_some_and(|arrival| arrival.0 <= until) {
                    let (_, circuit, sent) = left.pop_front().unwrap();
                    expected[usize::from(circuit)] += u64::from(left.iter().any(|other| other.2 < sent));
                    order.on_arrival(network(circuit));
                }
                if let Some(send) = sends.get(k) {
                    order.on_sent(network(send.0));
                }
            }
            prop_assert_eq!([order.packet_overtakings, order.circuit_overtakings], expected);
            prop_assert!(order.runs.is_empty());
        }
    }
}

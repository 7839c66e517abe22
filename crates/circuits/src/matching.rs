//! A matching: one configuration of the circuit switch.
//!
//! Every rack sends to exactly one rack and receives from exactly one (Etalon, NSDI'20, section 2.1); here a rack
//! may also be idle, as in schedules that serve only some of the pairs.

use std::fmt;

/// A rack, and its port of the circuit switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RackId(pub u16);

impl RackId {
    /// The number as an index into per-rack tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for RackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Why a list of pairs is not a matching.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatchingError {
    /// A rack number that the fabric does not have.
    #[error("rack {rack} does not exist: the fabric has racks 0 to {}", racks - 1)]
    NoSuchRack {
        /// The rack's number that was found.
        rack: RackId,
        /// How many racks there are.
        racks: usize,
    },
    /// A rack that would send to itself.
    #[error("rack {rack} is matched with itself")]
    Itself {
        /// The rack.
        rack: RackId,
    },
    /// A rack that would send to two.
    #[error("rack {rack} sends to two racks, {first} and {second}: a matching allows one")]
    SendsToTwo {
        /// The sender.
        rack: RackId,
        /// The rack's destination so far.
        first: RackId,
        /// The second destination.
        second: RackId,
    },
    /// A rack that would receive from two.
    #[error("rack {rack} receives from two racks, {first} and {second}: a matching allows one")]
    ReceivesFromTwo {
        /// The receiver.
        rack: RackId,
        /// The rack's source so far.
        first: RackId,
        /// The second source.
        second: RackId,
    },
}

/// One configuration of the circuit switch: for each rack the rack that it sends to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matching {
    destinations: Vec<Option<RackId>>,
}

impl Matching {
    /// The matching of `racks` racks in which the first rack of each pair sends to the second; the others are idle.
    ///
    /// # Errors
    /// When the pairs are not a matching.
    pub fn new(racks: usize, pairs: &[(RackId, RackId)]) -> Result<Self, MatchingError> {
        let mut destinations = vec![None; racks];
        let mut sources = vec![None; racks];
        for &(src, dst) in pairs {
            if let Some(rack) = [src, dst].into_iter().find(|rack| rack.index() >= racks) {
                return Err(MatchingError::NoSuchRack { rack, racks });
            }
            if src == dst {
                return Err(MatchingError::Itself { rack: src });
            }
            if let Some(first) = destinations[src.index()].replace(dst) {
                return Err(MatchingError::SendsToTwo { rack: src, first, second: dst });
            }
            if let Some(first) = sources[dst.index()].replace(src) {
                return Err(MatchingError::ReceivesFromTwo { rack: dst, first, second: src });
            }
        }
        Ok(Matching { destinations })
    }

    /// Each rack sends to the rack `shift` further on: one of the matchings of a strobe.
    ///
    /// # Panics
    /// When `shift` is a multiple of `racks`: every rack would be matched with itself.
    pub fn rotation(racks: usize, shift: usize) -> Self {
        assert!(!shift.is_multiple_of(racks), "a rotation by {shift} of {racks} racks matches each with itself");
        let destinations = (0..racks).map(|rack| Some(RackId(((rack + shift) % racks) as u16))).collect();
        Matching { destinations }
    }

    /// How many racks the switch has.
    pub fn racks(&self) -> usize {
        self.destinations.len()
    }

    /// The rack that `src` sends to, if it is not idle.
    pub fn destination(&self, src: RackId) -> Option<RackId> {
        self.destinations[src.index()]
    }

    /// The pairs (source, destination) that have a circuit, in the order of their sources.
    pub fn pairs(&self) -> impl Iterator<Item = (RackId, RackId)> + '_ {
        self.destinations.iter().enumerate().filter_map(|(src, dst)| dst.map(|dst| (RackId(src as u16), dst)))
    }
}

impl fmt::Display for Matching {
    /// The pairs as `0>1 1>0`, `idle` when there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self.pairs().map(|(src, dst)| format!("{src}>{dst}")).collect();
        if pairs.is_empty() { f.pad("idle") } else { f.pad(&pairs.join(" ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matching(racks: usize, pairs: &[(u16, u16)]) -> Result<Matching, MatchingError> {
        let pairs: Vec<_> = pairs.iter().map(|&(a, b)| (RackId(a), RackId(b))).collect();
        Matching::new(racks, &pairs)
    }

    #[test]
    fn an_idle_rack_is_allowed() {
        let m = matching(3, &[(0, 2)]).unwrap();
        assert_eq!(m.destination(RackId(0)), Some(RackId(2)));
        assert_eq!(m.destination(RackId(1)), None);
        assert_eq!(m.to_string(), "0>2");
        assert_eq!(matching(3, &[]).unwrap().to_string(), "idle");
    }

    #[test]
    fn what_is_not_a_matching_is_refused_by_name() {
        let text = |pairs| matching(3, pairs).unwrap_err().to_string();
        assert_eq!(text(&[(0, 3)]), "rack 3 does not exist: the fabric has racks 0 to 2");
        assert_eq!(text(&[(1, 1)]), "rack 1 is matched with itself");
        assert_eq!(text(&[(0, 1), (0, 2)]), "rack 0 sends to two racks, 1 and 2: a matching allows one");
        assert_eq!(text(&[(0, 1), (2, 1)]), "rack 1 receives from two racks, 0 and 2: a matching allows one");
    }

    proptest! {
        #[test]
        fn accepted_exactly_when_each_rack_has_one_partner(pairs in prop::collection::vec((0u16..6, 0u16..6), 0..6)) {
            let once = |side: &dyn Fn(&(u16, u16)) -> u16| {
                (0..6).all(|rack| pairs.iter().filter(|pair| side(pair) == rack).count() <= 1)
            };
            let legal = pairs.iter().all(|(a, b)| a != b && *a < 5 && *b < 5) && once(&|p| p.0) && once(&|p| p.1);
            let got = matching(5, &pairs);
            prop_assert_eq!(got.is_ok(), legal, "{:?}", got);
            if let Ok(m) = got {
                prop_assert_eq!(m.pairs().count(), pairs.len());
            }
        }
    }
}

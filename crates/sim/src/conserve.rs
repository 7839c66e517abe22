//! Conservation: no packet appears or vanishes uncounted. Checked at the end of every run.

use std::fmt;

/// An identity that does not hold: a defect of the engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imbalance {
    /// The port, or `fabric` for the whole.
    pub place: String,
    /// The identity: which two counts should be equal.
    pub identity: &'static str,
    /// The left side's count.
    pub left: u64,
    /// The right side's count.
    pub right: u64,
}

impl fmt::Display for Imbalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {} is not {}", self.place, self.identity, self.left, self.right)
    }
}

/// The identities that do not hold.
#[derive(Default)]
pub(crate) struct Violations(Vec<Imbalance>);

impl Violations {
    /// Checks that both sides of an identity are equal.
    pub(crate) fn check(&mut self, place: &str, identity: &'static str, left: u64, right: u64) {
        if left != right {
            self.0.push(Imbalance { place: place.into(), identity, left, right });
        }
    }

    pub(crate) fn into_imbalances(self) -> Vec<Imbalance> {
        self.0
    }
}

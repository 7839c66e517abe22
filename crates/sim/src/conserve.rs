//! Conservation: no packet appears or vanishes unseen. Checked at the end of every run.

use std::fmt;

/// An identity that does not hold: a defect of the engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imbalance {
    /// The port, or `fabric` for the whole.
    pub place: String,
    /// What should be equal.
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

/// Collects the identities that fail.
#[derive(Default)]
pub(crate) struct Ledger {
    failures: Vec<Imbalance>,
}

impl Ledger {
    pub(crate) fn check(&mut self, place: &str, identity: &'static str, left: u64, right: u64) {
        if left != right {
            self.failures.push(Imbalance { place: place.into(), identity, left, right });
        }
    }

    pub(crate) fn failures(self) -> Vec<Imbalance> {
        self.failures
    }
}

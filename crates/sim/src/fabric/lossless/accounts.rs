//! Ingress accounts: the bytes that each switch holds of the packets that arrived over each link, by class, and for
//! which of its ports.

use firstlight_net::pfc::PfcLimits;
use std::ops::Range;

/// A threshold that an account has crossed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ThresholdCrossing {
    /// The account has crossed none.
    None,
    /// The account has exceeded XOFF: its sender is to be paused.
    Xoff,
    /// The account has fallen to XON: its sender may resume.
    Xon,
}

/// The account of one class of one link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IngressAccount {
    pub(super) bytes: u64,
    pub(super) peak: u64,
}

/// The accounts of all links.
pub(super) struct IngressAccounts {
    limits: Vec<PfcLimits>,
    priorities: usize,
    accounts: Vec<IngressAccount>,
    /// The classes of each link that are to be paused, a bit each.
    paused: Vec<u8>,
    rows: Vec<EgressRow>,
    /// A row for each account: bytes for each egress of the switch.
    by_egress: Vec<u32>,
}

/// The egresses of the switch that a link leads to: the first, their number, and where the link's rows begin.
#[derive(Clone, Copy, Debug)]
struct EgressRow {
    first: usize,
    count: usize,
    begin: usize,
}

impl IngressAccounts {
    /// Each link is given by the egresses of the switch that it leads to, and by its limits.
    pub(super) fn new(links: impl Iterator<Item = (Range<usize>, PfcLimits)>, priorities: usize) -> Self {
        let (mut begin, mut rows, mut limits) = (0, vec![], vec![]);
        for (egresses, limit) in links {
            let row = EgressRow { first: egresses.start, count: egresses.len(), begin };
            begin += row.count * priorities;
            rows.push(row);
            limits.push(limit);
        }
        let accounts = vec![IngressAccount::default(); limits.len() * priorities];
        let (paused, by_egress) = (vec![0; limits.len()], vec![0; begin]);
        IngressAccounts { limits, priorities, accounts, paused, rows, by_egress }
    }

    /// The number of classes that have accounts of their own.
    pub(super) fn priorities(&self) -> usize {
        self.priorities
    }

    pub(super) fn limits(&self, from: usize) -> &PfcLimits {
        &self.limits[from]
    }

    pub(super) fn get(&self, from: usize, priority: usize) -> IngressAccount {
        self.accounts[from * self.priorities + priority]
    }

    /// The classes of a link that are to be paused, a bit each.
    pub(super) fn paused(&self, from: usize) -> u8 {
        self.paused[from]
    }

    pub(super) fn has_room(&self, from: usize, priority: usize, size: u16) -> bool {
        self.get(from, priority).bytes + u64::from(size) <= self.limits[from].buffer.get()
    }

    /// A packet has come, and is bound for `egress`.
    pub(super) fn add(&mut self, from: usize, priority: usize, egress: usize, size: u16) -> ThresholdCrossing {
        *self.cell(from, priority, egress) += u32::from(size);
        let account = &mut self.accounts[from * self.priorities + priority];
        account.bytes += u64::from(size);
        account.peak = account.peak.max(account.bytes);
        let bit = 1 << priority;
        if account.bytes <= self.limits[from].xoff.get() || self.paused[from] & bit != 0 {
            return ThresholdCrossing::None;
        }
        self.paused[from] |= bit;
        ThresholdCrossing::Xoff
    }

    /// A packet has left by `egress`.
    pub(super) fn remove(&mut self, from: usize, priority: usize, egress: usize, size: u16) -> ThresholdCrossing {
        *self.cell(from, priority, egress) -= u32::from(size);
        let account = &mut self.accounts[from * self.priorities + priority];
        account.bytes -= u64::from(size);
        let bit = 1 << priority;
        if account.bytes > self.limits[from].xon.get() || self.paused[from] & bit == 0 {
            return ThresholdCrossing::None;
        }
        self.paused[from] &= !bit;
        ThresholdCrossing::Xon
    }

    fn cell(&mut self, from: usize, priority: usize, egress: usize) -> &mut u32 {
        let EgressRow { first, count, begin } = self.rows[from];
        &mut self.by_egress[begin + priority * count + egress - first]
    }

    /// The egresses for which an account holds bytes, with their bytes.
    pub(super) fn egresses(&self, from: usize, priority: usize) -> impl Iterator<Item = (usize, u64)> + '_ {
        let EgressRow { first, count, begin } = self.rows[from];
        let row = &self.by_egress[begin + priority * count..][..count];
        row.iter()
            .enumerate()
            .filter(|(_, bytes)| **bytes > 0)
            .map(move |(egress, bytes)| (first + egress, (*bytes).into()))
    }

    /// The egress for which an account holds most; of equals the first.
    pub(super) fn largest(&self, from: usize, priority: usize) -> usize {
        let all = self.egresses(from, priority);
        all.max_by_key(|(egress, bytes)| (*bytes, std::cmp::Reverse(*egress)))
            .expect("an account above XOFF holds bytes")
            .0
    }
}

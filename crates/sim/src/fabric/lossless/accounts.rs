//! What each switch holds of what came over each link, by class, and for which of its ports.

use firstlight_net::pfc::PfcLimits;
use std::ops::Range;

/// What an account does with its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// Nothing.
    None,
    /// It has exceeded XOFF.
    Pause,
    /// It has come down to XON.
    Resume,
}

/// One class of one link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    pub(super) bytes: u64,
    pub(super) peak: u64,
}

/// The accounts of all links.
pub(super) struct Accounts {
    limits: Vec<PfcLimits>,
    priorities: usize,
    accounts: Vec<Account>,
    /// By transmitter: its classes that are to be paused, a bit each.
    paused: Vec<u8>,
    /// By transmitter: the first port of the switch that it sends to, how many there are, and where its rows begin.
    rows: Vec<Row>,
    /// A row for each account: bytes for each port of the switch.
    by_egress: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    first_port: usize,
    ports: usize,
    begin: usize,
}

impl Accounts {
    /// `egresses` are the ports of the switch that each transmitter sends to.
    pub(super) fn new(egresses: impl Fn(usize) -> Range<usize>, limits: Vec<PfcLimits>, priorities: usize) -> Self {
        let mut begin = 0;
        let row = |transmitter| {
            let ports = egresses(transmitter);
            let row = Row { first_port: ports.start, ports: ports.len(), begin };
            begin += row.ports * priorities;
            row
        };
        let rows = (0..limits.len()).map(row).collect();
        let accounts = vec![Account::default(); limits.len() * priorities];
        let (paused, by_egress) = (vec![0; limits.len()], vec![0; begin]);
        Accounts { limits, priorities, accounts, paused, rows, by_egress }
    }

    /// How many classes have accounts of their own.
    pub(super) fn priorities(&self) -> usize {
        self.priorities
    }

    pub(super) fn limits(&self, from: usize) -> &PfcLimits {
        &self.limits[from]
    }

    pub(super) fn get(&self, from: usize, priority: usize) -> Account {
        self.accounts[from * self.priorities + priority]
    }

    /// The classes of a transmitter that are to be paused, a bit each.
    pub(super) fn paused(&self, from: usize) -> u8 {
        self.paused[from]
    }

    pub(super) fn has_room(&self, from: usize, priority: usize, size: u16) -> bool {
        self.get(from, priority).bytes + u64::from(size) <= self.limits[from].buffer.get()
    }

    /// A packet has come, and is bound for `egress`.
    pub(super) fn add(&mut self, from: usize, priority: usize, egress: usize, size: u16) -> Change {
        *self.cell(from, priority, egress) += u32::from(size);
        let account = &mut self.accounts[from * self.priorities + priority];
        account.bytes += u64::from(size);
        account.peak = account.peak.max(account.bytes);
        let bit = 1 << priority;
        if account.bytes <= self.limits[from].xoff.get() || self.paused[from] & bit != 0 {
            return Change::None;
        }
        self.paused[from] |= bit;
        Change::Pause
    }

    /// A packet has left by `egress`.
    pub(super) fn remove(&mut self, from: usize, priority: usize, egress: usize, size: u16) -> Change {
        *self.cell(from, priority, egress) -= u32::from(size);
        let account = &mut self.accounts[from * self.priorities + priority];
        account.bytes -= u64::from(size);
        let bit = 1 << priority;
        if account.bytes > self.limits[from].xon.get() || self.paused[from] & bit == 0 {
            return Change::None;
        }
        self.paused[from] &= !bit;
        Change::Resume
    }

    fn cell(&mut self, from: usize, priority: usize, egress: usize) -> &mut u32 {
        let Row { first_port, ports, begin } = self.rows[from];
        &mut self.by_egress[begin + priority * ports + egress - first_port]
    }

    /// The ports for which an account holds bytes, with their bytes.
    pub(super) fn egresses(&self, from: usize, priority: usize) -> impl Iterator<Item = (usize, u64)> + '_ {
        let Row { first_port, ports, begin } = self.rows[from];
        let row = &self.by_egress[begin + priority * ports..][..ports];
        row.iter()
            .enumerate()
            .filter(|(_, bytes)| **bytes > 0)
            .map(move |(port, bytes)| (first_port + port, (*bytes).into()))
    }

    /// The port for which an account holds most; of equals the first.
    pub(super) fn largest(&self, from: usize, priority: usize) -> usize {
        let all = self.egresses(from, priority);
        all.max_by_key(|(port, bytes)| (*bytes, std::cmp::Reverse(*port))).expect("an account above XOFF holds bytes").0
    }
}

//! Deadlock: transmitters that are paused and can never go on, because each waits for others of them.
//!
//! A paused class goes on when its account comes down to XON. It never does when more than XON of it is bound for ports that are
//! paused themselves and never go on. So: of all that are paused, take away whoever could go on if the rest stood for ever, until
//! nothing changes. What is left stands for ever, whatever comes; it was dead since the last of its circle stopped.

use super::accounts::Accounts;
use super::ledger::Ledger;
use firstlight_units::Time;

/// A circle of transmitters that wait for each other.
pub(super) struct Circle {
    pub(super) priority: usize,
    pub(super) transmitters: Vec<usize>,
    pub(super) since: Time,
    /// How many transmitters can never go on, those that wait for the circle included.
    pub(super) stopped: usize,
}

/// A deadlock of that class, if there is one.
///
/// `rests` says of each transmitter whether it is paused, has nothing in service and no pause frame on the way to it.
pub(super) fn find(accounts: &Accounts, ledger: &Ledger, rests: &[bool], priority: usize) -> Option<Circle> {
    let (mut dead, transmitters) = (rests.to_vec(), rests.len());
    let stuck = |dead: &[bool], from: usize| -> u64 {
        accounts.egresses(from, priority).filter(|(port, _)| dead[*port]).map(|(_, bytes)| bytes).sum()
    };
    loop {
        let free = |from: &usize| dead[*from] && stuck(&dead, *from) <= accounts.limits(*from).xon.get();
        let free: Vec<usize> = (0..transmitters).filter(free).collect();
        if free.is_empty() {
            break;
        }
        free.into_iter().for_each(|from| dead[from] = false);
    }
    let first = dead.iter().position(|dead| *dead)?;
    let next = |from: usize| {
        let all = accounts.egresses(from, priority).filter(|(port, _)| dead[*port]);
        all.max_by_key(|(_, bytes)| *bytes).expect("who is dead waits for one that is").0
    };
    let mut way = vec![first];
    let circle = loop {
        let at = next(way[way.len() - 1]);
        if let Some(begin) = way.iter().position(|met| *met == at) {
            break way.split_off(begin);
        }
        way.push(at);
    };
    let since = circle.iter().filter_map(|from| ledger.since(*from, priority)).max().expect("a circle has members");
    Some(Circle { priority, transmitters: circle, since, stopped: dead.iter().filter(|dead| **dead).count() })
}

//! Loss recovery where the peer does not send SACK: duplicate acknowledgements report how much has arrived, not what
//! (RFC 5681, section 3.2; RFC 6582, NewReno).
//!
//! Each duplicate takes a packet out of the network, so that new data follow (limited transmit, RFC 3042). Three of
//! them make the first packet lost, and during recovery so does each partial acknowledgement. Recovery ends when
//! something beyond it is acknowledged (RFC 6582, section 4.1, the careful variant).

use super::sender::{Phase, Sender};

impl Sender {
    /// A duplicate acknowledgement: one more packet has arrived, beyond the first that is missing. Returns how many
    /// packets it reports. As measured of Linux, none counts once all is acknowledged that a recovery or a timeout
    /// repairs; nor does one after a timeout before data are sent for the first time.
    pub(crate) fn on_duplicate_ack(&mut self) -> u32 {
        let repaired = self.phase >= Phase::Recovery && self.una >= self.phase_end;
        if repaired || (self.phase == Phase::Loss && self.next <= self.phase_end) {
            return 0;
        }
        let missing = self.board.lost().max(1);
        let most = self.board.len().saturating_sub(missing);
        if self.board.duplicates < most {
            self.board.duplicates += 1;
            return 1;
        }
        // More has arrived than can be beyond the gap: packets have overtaken each other.
        self.rack.reordering = self.rack.reordering.max(self.board.len());
        0
    }

    /// An acknowledgement advanced over `acked` packets. One packet filled the gap; duplicates had reported the
    /// others. As measured of Linux, only a recovery, or the end of what a timeout had found lost, keeps the duplicates
    /// beyond. Returns how many of the acknowledged packets no duplicate has reported.
    pub(crate) fn forget_duplicates(&mut self, acked: u32) -> u32 {
        if acked == 0 {
            return 0;
        }
        let known = self.board.duplicates;
        let kept = self.phase == Phase::Recovery || (self.phase == Phase::Loss && self.una == self.phase_end);
        self.board.duplicates = if kept { known.saturating_sub(acked.saturating_sub(1)) } else { 0 };
        acked.saturating_sub(known).max(1)
    }

    /// Marks the first packet as lost where duplicates, or a partial acknowledgement during recovery, show that.
    /// Returns how many packets it found lost.
    pub(crate) fn detect_without_sack(&mut self, advanced: bool) -> u32 {
        let enough = self.phase < Phase::Recovery && self.board.duplicates >= self.rack.reordering;
        let partial = self.phase == Phase::Recovery && advanced && self.una < self.phase_end;
        if !(enough || partial) || self.board.is_empty() {
            return 0;
        }
        let lost = self.board.lost();
        self.board.mark_lost(0);
        self.board.lost() - lost
    }
}

//! Delivery rate samples, for congestion controls that ask for them (draft-cheng-iccrg-delivery-rate-estimation-00).
//!
//! Each packet in flight has a record of what was delivered when it was sent. The ACK that reports it gives a sample:
//! the packets delivered since then, and the longer of the times in which these were sent and acknowledged (section
//! 2.2). Other connections have no records.

use super::sender::{Phase, Sender};
use super::terms::Terms;
use crate::cc::{Ack, CongestionControl, Delivery};
use firstlight_units::{Span, Time};
use std::collections::VecDeque;

/// State of a packet in flight (section 3.1.2: P).
#[derive(Clone, Copy, Debug)]
struct FlightRecord {
    /// When the packet was last sent.
    sent: Time,
    /// Packets that had been delivered then.
    delivered: u64,
    /// When the last of those was reported.
    delivered_at: Time,
    /// When the packet was sent that began this record's sending interval.
    first_sent: Time,
    /// The sender was limited by its data then.
    limited: bool,
    /// Packets from the oldest one that was not acknowledged then to this one.
    extent: u32,
}

/// State of a connection (section 3.1.1: C).
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryRate {
    /// Records of the packets in flight, in the order of the scoreboard.
    records: VecDeque<FlightRecord>,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    /// Samples are limited until so many packets are delivered; 0 if they are not.
    limited_until: u64,
    /// The newest packet that the current ACK reports.
    newest: Option<FlightRecord>,
}

impl DeliveryRate {
    /// Section 3.2: packet `i` of the scoreboard leaves; `in_flight` counts that packet. One that leaves alone ends a
    /// time without data.
    fn on_sent(&mut self, i: usize, in_flight: u32, extent: u32, now: Time) {
        if in_flight <= 1 {
            self.first_sent = now;
            self.delivered_at = now;
            self.limited_until = self.delivered.max(1);
        }
        let record = FlightRecord {
            sent: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            limited: self.limited_until > 0,
            extent,
        };
        if i < self.records.len() {
            self.records[i] = record;
        } else {
            self.records.push_back(record);
        }
    }

    /// Packet `i` of the scoreboard is reported by SACK.
    pub(crate) fn on_delivered(&mut self, i: usize, now: Time) {
        self.take_in(self.records[i], now);
    }

    /// The scoreboard's first packet is acknowledged; `fresh` unless a SACK has reported it before.
    pub(crate) fn on_popped(&mut self, fresh: bool, now: Time) {
        if let Some(record) = self.records.pop_front().filter(|_| fresh) {
            self.take_in(record, now);
        }
    }

    /// Section 3.3: updates the sample by a packet that was delivered.
    fn take_in(&mut self, record: FlightRecord, now: Time) {
        self.delivered += 1;
        self.delivered_at = now;
        if self.newest.is_none_or(|newest| (record.delivered, record.sent) >= (newest.delivered, newest.sent)) {
            self.newest = Some(record);
            self.first_sent = record.sent;
        }
    }

    /// An ACK that comes late has reported packets: they are not counted.
    pub(crate) fn forget(&mut self, packets: u32) {
        self.delivered -= u64::from(packets);
        self.newest = None;
    }

    /// Section 3.3: the sample of an ACK. One that took less than the smallest round-trip time is none.
    fn end_ack(&mut self, min_rtt: Span) -> Delivery {
        if self.limited_until > 0 && self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let Some(record) = self.newest.take() else { return Delivery { total: self.delivered, ..Delivery::default() } };
        // By a clock of whole microseconds, as Linux's.
        let between = |start: Time, end: Time| Span::from_us(end.whole_us().saturating_sub(start.whole_us()));
        let sending = between(record.first_sent, record.sent);
        let acknowledging = between(record.delivered_at, self.delivered_at);
        Delivery {
            total: self.delivered,
            total_before: record.delivered,
            interval: Some(sending.max(acknowledging)).filter(|&span| span >= min_rtt && !span.is_zero()),
            limited: record.limited,
            flight_at_send: record.extent,
            ..Delivery::default()
        }
    }
}

impl Sender {
    /// Packet `i` of the scoreboard was sent, for the first time or again.
    #[inline(always)]
    pub(crate) fn record_sent(&mut self, i: usize, now: Time, terms: &Terms) {
        if let Some(rate) = &mut self.delivery_rate {
            let extent = (self.board.get(i).end() - self.una).div_ceil(terms.mss.into());
            rate.on_sent(i, self.board.in_flight(), extent as u32, now);
        }
    }

    /// Section 3.4: the window has room, and the application has no data.
    #[inline]
    pub(crate) fn record_idle(&mut self) {
        let in_flight = u64::from(self.board.in_flight());
        if let Some(rate) = &mut self.delivery_rate
            && in_flight > 0
        {
            rate.limited_until = rate.delivered + in_flight;
        }
    }

    /// Reports to the controller the delivery rate by an ACK; true if the controller has set the window.
    pub(crate) fn report_delivery(&mut self, ack: &Ack, flight_before: u32, lost: u32) -> bool {
        let Some(rate) = &mut self.delivery_rate else { return false };
        let delivery = Delivery {
            flight_before,
            in_flight: self.board.in_flight(),
            lost,
            repairing: self.phase >= Phase::Recovery,
            ..rate.end_ack(self.rtt.min())
        };
        self.cc.on_delivery(&mut self.window, ack, &delivery)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// Ten packets leave 1 ms apart, and the path delivers one in 2 ms: 500 packets per second by the ACKs, which the
    /// 1000 per second of the sender do not raise (section 2.2).
    #[test]
    fn slower_of_sending_and_acknowledging_is_the_rate() {
        let mut rate = DeliveryRate::default();
        (0..10).for_each(|i| rate.on_sent(i, i as u32 + 1, 10, at(i as u64)));
        // The ACK of the first packet, 100 ms after it, lets ten more leave at once.
        rate.on_popped(true, at(100));
        assert_eq!(rate.end_ack(Span::from_ms(100)).interval, Some(Span::from_ms(100)));
        rate.on_sent(9, 10, 10, at(100));
        for i in 1..10 {
            rate.on_popped(true, at(100 + 2 * i));
            rate.end_ack(Span::from_ms(100));
        }
        rate.on_popped(true, at(200));
        let sample = rate.end_ack(Span::from_ms(100));
        // Ten packets between the ACKs at 100 and 200 ms; the sender needed the same time or less.
        assert_eq!((sample.total, sample.total_before, sample.flight_at_send), (11, 1, 10));
        assert_eq!(sample.interval, Some(Span::from_ms(100)));
    }

    #[test]
    fn samples_without_data_are_limited_and_short_ones_none() {
        let mut rate = DeliveryRate::default();
        rate.on_sent(0, 1, 1, at(0));
        rate.on_sent(1, 2, 2, at(0));
        rate.on_popped(true, at(10));
        assert!(rate.end_ack(Span::from_ms(10)).limited, "the first packet ends a time without data");
        rate.on_delivered(0, at(11));
        assert_eq!(rate.end_ack(Span::from_ms(12)).interval, None, "11 ms are less than the smallest RTT");
        rate.on_popped(false, at(20));
        let nothing = rate.end_ack(Span::from_ms(10));
        assert_eq!((nothing.total, nothing.interval), (2, None), "SACK has reported that packet before");
    }
}

//! The methods of [`CongestionControl`] as values: the calls of a controller behind a binary interface, or in another
//! language.

use crate::{Ack, Bytes, CongestionControl, Delivery, EcnUse, Start, Window};

/// A call of a controller. Each is a method of [`CongestionControl`]; the answer is a number.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// [`CongestionControl::on_established`]; no answer.
    Established(&'a Start),
    /// [`CongestionControl::on_ack`]; no answer.
    Ack(&'a Ack),
    /// [`CongestionControl::on_delivery`]; the answer is 1 if the controller has set the window.
    Delivery(&'a Ack, &'a Delivery),
    /// [`CongestionControl::grow`]; no answer.
    Grow(&'a Ack),
    /// [`CongestionControl::backs_off`]; the answer is 1 if it does.
    BacksOff,
    /// [`CongestionControl::ssthresh`]; the answer is the threshold in packets.
    Threshold {
        /// The congestion was a mark, not a loss.
        marked: bool,
    },
    /// [`CongestionControl::on_recovery`]; no answer.
    Recovery,
    /// [`CongestionControl::on_reduced`]; no answer.
    Reduced,
    /// [`CongestionControl::on_timeout`]; no answer.
    Timeout,
    /// [`CongestionControl::on_timeout_in_reduction`]; no answer.
    TimeoutInReduction,
    /// [`CongestionControl::undo`]; the answer is the window in packets.
    Undo {
        /// The window before the reduction, in packets.
        prior_cwnd: u32,
    },
    /// [`CongestionControl::pace`]; the answer is the wait in picoseconds.
    Pace(Bytes),
    /// [`CongestionControl::burst`]; the answer is in bytes.
    Burst,
    /// Asks for the controller's properties, once, before any other event. The answer is [`Properties::bits`].
    Properties,
}

impl Event<'_> {
    /// The name of the method.
    pub const fn method(&self) -> &'static str {
        match self {
            Event::Established(_) => "on_established",
            Event::Ack(_) => "on_ack",
            Event::Delivery(..) => "on_delivery",
            Event::Grow(_) => "grow",
            Event::BacksOff => "backs_off",
            Event::Threshold { .. } => "ssthresh",
            Event::Recovery => "on_recovery",
            Event::Reduced => "on_reduced",
            Event::Timeout => "on_timeout",
            Event::TimeoutInReduction => "on_timeout_in_reduction",
            Event::Undo { .. } => "undo",
            Event::Pace(_) => "pace",
            Event::Burst => "burst",
            Event::Properties => "ecn, wants_stamps or wants_delivery",
        }
    }
}

/// The properties of a controller, which it reports before its first event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// [`CongestionControl::ecn`].
    pub ecn: EcnUse,
    /// [`CongestionControl::wants_stamps`].
    pub stamps: bool,
    /// [`CongestionControl::wants_delivery`].
    pub delivery: bool,
}

const STAMPS: u64 = 4;
const DELIVERY: u64 = 8;

impl Properties {
    /// The properties as one number.
    pub const fn bits(self) -> u64 {
        let ecn = match self.ecn {
            EcnUse::Classic => 0,
            EcnUse::Precise => 1,
            EcnUse::OwnMeaning => 2,
        };
        ecn | if self.stamps { STAMPS } else { 0 } | if self.delivery { DELIVERY } else { 0 }
    }

    /// The properties from their number; `None` for a number that no properties have.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        let ecn = match bits & 3 {
            0 => EcnUse::Classic,
            1 => EcnUse::Precise,
            2 => EcnUse::OwnMeaning,
            _ => return None,
        };
        if bits >= 16 {
            return None;
        }
        Some(Properties { ecn, stamps: bits & STAMPS != 0, delivery: bits & DELIVERY != 0 })
    }
}

/// Calls the method of `controller` that `event` is, and returns its answer, or 0.
pub fn call(controller: &mut impl CongestionControl, event: Event<'_>, window: &mut Window) -> u64 {
    match event {
        Event::Established(start) => controller.on_established(window, start),
        Event::Ack(ack) => controller.on_ack(window, ack),
        Event::Delivery(ack, delivery) => return controller.on_delivery(window, ack, delivery).into(),
        Event::Grow(ack) => controller.grow(window, ack),
        Event::BacksOff => return controller.backs_off().into(),
        Event::Threshold { marked } => return controller.ssthresh(window, marked).into(),
        Event::Recovery => controller.on_recovery(window),
        Event::Reduced => controller.on_reduced(window),
        Event::Timeout => controller.on_timeout(window),
        Event::TimeoutInReduction => controller.on_timeout_in_reduction(),
        Event::Undo { prior_cwnd } => return controller.undo(window, prior_cwnd).into(),
        Event::Pace(bytes) => return controller.pace(bytes).as_ps(),
        Event::Burst => return controller.burst().get(),
        Event::Properties => {
            let (ecn, stamps, delivery) = (controller.ecn(), controller.wants_stamps(), controller.wants_delivery());
            return Properties { ecn, stamps, delivery }.bits();
        }
    }
    0
}

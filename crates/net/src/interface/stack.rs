//! The delays of a host's network stack, between TCP and the interface.
//!
//! Source: DX, section 2, "Removing host stack delay", Fig. 1 and 8. Sending is a call down the stack: by default it
//! takes its time and no more. Receiving waits for interrupts and for the processor, and meanwhile other packets
//! come: all that arrive before the stack gets to work are one batch. The wait is exponential, its mean an input (see
//! [`StackDelays::default`]).

use super::noise::{Xoshiro256PlusPlus, exponential};
use firstlight_units::{Span, Time};

/// The delays of a host's stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackDelays {
    /// The least time of a crossing of the stack, up or down.
    pub least: Span,
    /// Mean of the additional delay of sending; exponential, drawn once for each burst.
    pub send: Span,
    /// Mean of the additional delay of receiving; exponential, drawn once for each batch.
    pub receive: Span,
}

impl Default for StackDelays {
    /// From two numbers of the paper. The least RTT, 23 us, is four crossings. The standard deviation, 80 us, was
    /// measured on a flow whose window fills the link: such a flow's RTT is its window over the rate, plus what its
    /// ACKs wait in the two receiving stacks, less what the ACKs waited that let it be sent. That is four waits,
    /// independent and alike, so that one has half the deviation, 40 us, and with an exponential distribution the
    /// same mean. Stamps of the kernel on hosts whose stacks the fabric does not model have two of the waits, and
    /// deviate by 57 us.
    fn default() -> Self {
        StackDelays { least: Span::from_ns(5_750), send: Span::ZERO, receive: Span::from_us(40) }
    }
}

/// The stack of one host: packets keep their order.
#[derive(Clone, Debug)]
pub struct Stack {
    config: StackDelays,
    rng: Xoshiro256PlusPlus,
    /// When TCP handed over the last burst, and how long it went down.
    burst: Option<(Time, Span)>,
    sent: Time,
    batch: Time,
}

impl Stack {
    /// A stack that draws its delays from `rng`.
    pub fn new(config: StackDelays, rng: Xoshiro256PlusPlus) -> Self {
        Stack { config, rng, burst: None, sent: Time::ZERO, batch: Time::ZERO }
    }

    /// The delay of a sent packet that belongs to the burst of `at`. Calls for one burst follow each other.
    #[inline]
    pub(super) fn descent(&mut self, at: Time) -> Span {
        if let Some((burst, delay)) = self.burst
            && burst == at
        {
            return delay;
        }
        let delay = self.config.least + exponential(&mut self.rng, self.config.send);
        self.burst = Some((at, delay));
        delay
    }

    /// The time at which the interface gets a packet that TCP sends at `at`.
    #[inline]
    pub fn send(&mut self, at: Time) -> Time {
        self.sent = self.sent.max(at + self.descent(at));
        self.sent
    }

    /// When TCP gets a packet that arrives at the interface.
    #[inline]
    pub fn receive(&mut self, arrives: Time) -> Time {
        if arrives > self.batch {
            self.batch = arrives + exponential(&mut self.rng, self.config.receive);
        }
        self.batch + self.config.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    fn stack(config: StackDelays) -> Stack {
        Stack::new(config, Xoshiro256PlusPlus::seed_from_u64(1))
    }

    #[test]
    fn without_waits_each_crossing_takes_the_least() {
        let least = Span::from_us(5);
        let mut stack = stack(StackDelays { least, send: Span::ZERO, receive: Span::ZERO });
        for at in [7, 8, 100].map(|us| Time::ZERO + Span::from_us(us)) {
            assert_eq!((stack.send(at), stack.receive(at)), (at + least, at + least));
        }
    }

    #[test]
    fn bursts_and_batches_stay_together_and_in_order() {
        let mut stack = stack(StackDelays { send: Span::from_us(40), ..StackDelays::default() });
        let (mut sent, mut got, mut joined) = (Time::ZERO, Time::ZERO, 0);
        for n in 1..1_000 {
            let at = Time::ZERO + Span::from_us(10) * n;
            let (down, up) = (stack.send(at), stack.receive(at));
            assert_eq!((stack.send(at), stack.receive(at)), (down, up), "one burst, one batch");
            assert!(down >= sent && up >= got && down > at && up > at);
            joined += u32::from(up == got);
            (sent, got) = (down, up);
        }
        // A batch waits 40 us and the packets come each 10 us: the first of five.
        assert!((750..850).contains(&joined), "{joined}");
    }
}

//! The binary interface between the engine and a shared object with a controller, in C's layout, so that the two may
//! come from different compilers.
//!
//! A shared object has one symbol, [`SYMBOL`], of the type [`ControllerTable`], which the macro
//! [`congestion_control!`](crate::congestion_control) writes. [`Instance`] is the engine's side.

#![expect(unsafe_code, reason = "a binary interface is pointers and functions of another compilation")]

use crate::event::{Event, call};
use crate::{Ack, Bytes, CongestionControl, Delivery, Latency, Span, Start, Time, Window};
use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The version of this interface. It changes with every change of [`ControllerTable`], [`RawEvent`] or [`Window`].
pub const VERSION: u32 = 1;

/// The name of the symbol in a shared object.
pub const SYMBOL: &str = "FIRSTLIGHT_CONGESTION_CONTROL";

/// The functions that a shared object offers.
#[repr(C)]
#[derive(Debug)]
pub struct ControllerTable {
    /// [`VERSION`] of the crate that the object was built with. First, in every version.
    pub version: u32,
    /// Makes a controller.
    create: extern "C" fn() -> *mut c_void,
    /// Calls a controller. The result is 0, or 1 when it panicked.
    call: unsafe extern "C" fn(*mut c_void, *const RawEvent, *mut Window, *mut u64) -> u32,
    /// Copies why the controller panicked, as UTF-8, into a buffer of that many bytes; returns the length of the whole
    /// text in bytes.
    fault: unsafe extern "C" fn(*const c_void, *mut u8, usize) -> usize,
    /// Frees a controller.
    release: unsafe extern "C" fn(*mut c_void),
}

/// A span that is not there.
const NONE: u64 = u64::MAX;

/// An [`Event`] in C's layout: its kind and the numbers of all its parts. Those of other kinds are zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "each field is the field of that name in Event, Ack, Start or Delivery")]
pub struct RawEvent {
    pub kind: u32,
    /// `marked`, `ece`, `reducing`, `open`, `limited`, `repairing`, in the bits from 0 on; bit 6: there is a latency;
    /// bit 7: `predicted`.
    pub flags: u32,
    pub now: u64,
    pub rtt: u64,
    pub srtt: u64,
    pub latency_rtt: u64,
    pub one_way: i32,
    pub delivered: u32,
    pub advanced: u32,
    pub mss: u32,
    pub una: u64,
    pub next: u64,
    pub timestamps: [u32; 2],
    pub seed: u64,
    /// Bytes that leave, size of a full packet, window before a reduction.
    pub amount: u64,
    pub total: u64,
    pub total_before: u64,
    pub interval: u64,
    pub flight_at_send: u32,
    pub flight_before: u32,
    pub in_flight: u32,
    pub lost: u32,
}

impl RawEvent {
    fn of(event: Event<'_>) -> Self {
        let raw = RawEvent::default();
        match event {
            Event::Established(start) => RawEvent {
                kind: 0,
                now: start.now.as_ps(),
                srtt: ps(start.srtt),
                amount: start.packet.get(),
                seed: start.seed,
                ..raw
            },
            Event::Ack(ack) => RawEvent { kind: 1, ..Self::of_ack(ack) },
            Event::Delivery(ack, delivery) => {
                let raw = Self::of_ack(ack);
                RawEvent {
                    kind: 2,
                    flags: raw.flags | u32::from(delivery.limited) << 4 | u32::from(delivery.repairing) << 5,
                    total: delivery.total,
                    total_before: delivery.total_before,
                    interval: ps(delivery.interval),
                    flight_at_send: delivery.flight_at_send,
                    flight_before: delivery.flight_before,
                    in_flight: delivery.in_flight,
                    lost: delivery.lost,
                    ..raw
                }
            }
            Event::Grow(ack) => RawEvent { kind: 3, ..Self::of_ack(ack) },
            Event::BacksOff => RawEvent { kind: 4, ..raw },
            Event::Threshold { marked } => RawEvent { kind: 5, flags: marked.into(), ..raw },
            Event::Recovery => RawEvent { kind: 6, ..raw },
            Event::Reduced => RawEvent { kind: 7, ..raw },
            Event::Timeout => RawEvent { kind: 8, ..raw },
            Event::TimeoutInReduction => RawEvent { kind: 9, ..raw },
            Event::Undo { prior_cwnd } => RawEvent { kind: 10, amount: prior_cwnd.into(), ..raw },
            Event::Pace(bytes) => RawEvent { kind: 11, amount: bytes.get(), ..raw },
            Event::Burst => RawEvent { kind: 12, ..raw },
            Event::Properties => RawEvent { kind: 13, ..raw },
        }
    }

    fn of_ack(ack: &Ack) -> Self {
        let Ack { ece, reducing, open, predicted, latency, .. } = *ack;
        let flags = [false, ece, reducing, open, false, false, latency.is_some(), predicted];
        RawEvent {
            flags: flags.iter().enumerate().map(|(bit, flag)| u32::from(*flag) << bit).sum(),
            now: ack.now.as_ps(),
            rtt: ps(ack.rtt),
            srtt: ps(ack.srtt),
            latency_rtt: latency.map_or(0, |latency| latency.rtt.as_ps()),
            one_way: latency.map_or(0, |latency| latency.one_way),
            delivered: ack.delivered,
            advanced: ack.advanced,
            mss: ack.mss,
            una: ack.una,
            next: ack.next,
            timestamps: ack.timestamps,
            ..RawEvent::default()
        }
    }

    fn flag(&self, bit: u32) -> bool {
        self.flags >> bit & 1 == 1
    }

    fn ack(&self) -> Ack {
        let latency = Latency { one_way: self.one_way, rtt: Span::from_ps(self.latency_rtt) };
        Ack {
            now: Time::from_ps(self.now),
            delivered: self.delivered,
            advanced: self.advanced,
            rtt: span(self.rtt),
            srtt: span(self.srtt),
            latency: self.flag(6).then_some(latency),
            ece: self.flag(1),
            reducing: self.flag(2),
            open: self.flag(3),
            predicted: self.flag(7),
            una: self.una,
            next: self.next,
            mss: self.mss,
            timestamps: self.timestamps,
        }
    }

    fn delivery(&self) -> Delivery {
        Delivery {
            total: self.total,
            total_before: self.total_before,
            interval: span(self.interval),
            limited: self.flag(4),
            flight_at_send: self.flight_at_send,
            flight_before: self.flight_before,
            in_flight: self.in_flight,
            lost: self.lost,
            repairing: self.flag(5),
        }
    }

    fn start(&self) -> Start {
        let (now, packet) = (Time::from_ps(self.now), Bytes::new(self.amount));
        Start { now, srtt: span(self.srtt), packet, seed: self.seed }
    }

    /// Calls `with` with the event; `None` for a kind that there is not.
    fn with<T>(&self, with: impl FnOnce(Event<'_>) -> T) -> Option<T> {
        Some(match self.kind {
            0 => with(Event::Established(&self.start())),
            1 => with(Event::Ack(&self.ack())),
            2 => with(Event::Delivery(&self.ack(), &self.delivery())),
            3 => with(Event::Grow(&self.ack())),
            4 => with(Event::BacksOff),
            5 => with(Event::Threshold { marked: self.flag(0) }),
            6 => with(Event::Recovery),
            7 => with(Event::Reduced),
            8 => with(Event::Timeout),
            9 => with(Event::TimeoutInReduction),
            10 => with(Event::Undo { prior_cwnd: self.amount as u32 }),
            11 => with(Event::Pace(Bytes::new(self.amount))),
            12 => with(Event::Burst),
            13 => with(Event::Properties),
            _ => return None,
        })
    }
}

fn ps(span: Option<Span>) -> u64 {
    span.map_or(NONE, Span::as_ps)
}

fn span(ps: u64) -> Option<Span> {
    (ps != NONE).then_some(Span::from_ps(ps))
}

/// The object that the engine's pointer to a controller points to.
struct PointedController<C> {
    controller: C,
    fault: String,
}

impl ControllerTable {
    /// The table of a type; each connection has a controller that `Default` makes.
    pub const fn of<C: CongestionControl + Default>() -> Self {
        ControllerTable {
            version: VERSION,
            create: create::<C>,
            call: call_raw::<C>,
            fault: fault::<C>,
            release: release::<C>,
        }
    }
}

extern "C" fn create<C: CongestionControl + Default>() -> *mut c_void {
    match catch_unwind(C::default) {
        Ok(controller) => Box::into_raw(Box::new(PointedController { controller, fault: String::new() })).cast(),
        Err(_) => std::ptr::null_mut(),
    }
}

/// # Safety
/// `this` comes from [`create`] of the same type and is nobody else's during the call; the other pointers point to
/// values of their types.
unsafe extern "C" fn call_raw<C: CongestionControl>(
    this: *mut c_void,
    event: *const RawEvent,
    window: *mut Window,
    answer: *mut u64,
) -> u32 {
    // SAFETY: by the function's contract.
    let (this, event, window, answer) =
        unsafe { (&mut *this.cast::<PointedController<C>>(), &*event, &mut *window, &mut *answer) };
    let called = catch_unwind(AssertUnwindSafe(|| event.with(|event| call(&mut this.controller, event, window))));
    match called {
        Ok(found) => {
            *answer = found.unwrap_or(0);
            0
        }
        Err(payload) => {
            this.fault = reason(&*payload);
            1
        }
    }
}

/// The text of a panic.
fn reason(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_string());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it gave no reason".into())
}

/// # Safety
/// `this` comes from [`create`] of the same type; `text` has room for `room` bytes.
unsafe extern "C" fn fault<C>(this: *const c_void, text: *mut u8, room: usize) -> usize {
    // SAFETY: by the function's contract.
    let fault = unsafe { &(*this.cast::<PointedController<C>>()).fault };
    // SAFETY: by the function's contract; the lengths are cut to the smaller one.
    unsafe { std::ptr::copy_nonoverlapping(fault.as_ptr(), text, fault.len().min(room)) };
    fault.len()
}

/// # Safety
/// `this` comes from [`create`] of the same type and is not used again.
unsafe extern "C" fn release<C>(this: *mut c_void) {
    // SAFETY: by the function's contract.
    drop(unsafe { Box::from_raw(this.cast::<PointedController<C>>()) });
}

/// A controller of a shared object, as the engine holds it.
#[derive(Debug)]
pub struct Instance {
    table: &'static ControllerTable,
    this: *mut c_void,
}

// SAFETY: a controller is called by one thread at a time, and its type holds nothing of a thread (`Send` is asked for
// by `congestion_control!`).
unsafe impl Send for Instance {}

impl Instance {
    /// A controller; `None` when its constructor panicked.
    pub fn new(table: &'static ControllerTable) -> Option<Self> {
        let this = (table.create)();
        (!this.is_null()).then_some(Instance { table, this })
    }

    /// Calls the controller.
    ///
    /// # Errors
    /// The text of the controller's panic.
    pub fn call(&mut self, event: Event<'_>, window: &mut Window) -> Result<u64, String> {
        let mut answer = 0;
        // SAFETY: `this` comes from the table's `create`, and `self` is borrowed alone.
        if unsafe { (self.table.call)(self.this, &RawEvent::of(event), window, &mut answer) } == 0 {
            return Ok(answer);
        }
        let mut text = vec![0; 4096];
        // SAFETY: as above; the room is the vector's.
        let len = unsafe { (self.table.fault)(self.this, text.as_mut_ptr(), text.len()) };
        text.truncate(len);
        Err(String::from_utf8_lossy(&text).into_owned())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: `this` comes from the table's `create` and is not used again.
        unsafe { (self.table.release)(self.this) }
    }
}

/// Makes `$Controller` the congestion control of this shared object. It must be [`CongestionControl`], `Default` and
/// `Send`: each connection has one, and no two have something in common.
#[macro_export]
macro_rules! congestion_control {
    ($PointedController:ty) => {
        const _: () = {
            const fn is_send<C: Send>() {}
            is_send::<$PointedController>();
        };
        /// The symbol that Firstlight's engine reads.
        #[expect(unsafe_code, reason = "the engine finds the table by this name")]
        #[unsafe(no_mangle)]
        pub static FIRSTLIGHT_CONGESTION_CONTROL: $crate::abi::ControllerTable =
            $crate::abi::ControllerTable::of::<$PointedController>();
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Properties;

    #[derive(Default)]
    struct EchoController {
        seen: Vec<String>,
    }

    impl CongestionControl for EchoController {
        fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
            self.seen.push(format!("{ack:?}"));
        }
        fn grow(&mut self, window: &mut Window, ack: &Ack) {
            window.cwnd += ack.delivered;
        }
        fn ssthresh(&mut self, window: &Window, marked: bool) -> u32 {
            assert!(window.cwnd < 100, "the window is {}", window.cwnd);
            if marked { self.seen.len() as u32 } else { window.cwnd / 2 }
        }
        fn on_established(&mut self, _window: &mut Window, start: &Start) {
            self.seen.push(format!("{start:?}"));
        }
        fn on_delivery(&mut self, _window: &mut Window, ack: &Ack, delivery: &Delivery) -> bool {
            self.seen.push(format!("{ack:?} {delivery:?}"));
            true
        }
        fn undo(&mut self, _window: &Window, prior_cwnd: u32) -> u32 {
            prior_cwnd + 1
        }
        fn pace(&mut self, bytes: Bytes) -> Span {
            Span::from_ps(bytes.get() * 8)
        }
        fn wants_delivery(&self) -> bool {
            true
        }
    }

    static TABLE: ControllerTable = ControllerTable::of::<EchoController>();

    fn ack() -> Ack {
        Ack {
            now: Time::from_ps(1),
            delivered: 2,
            advanced: 3,
            rtt: Some(Span::from_ps(4)),
            srtt: None,
            latency: Some(Latency { one_way: -5, rtt: Span::from_ps(6) }),
            ece: true,
            reducing: false,
            open: true,
            predicted: true,
            una: 7,
            next: 8,
            mss: 9,
            timestamps: [10, 11],
        }
    }

    /// Every number arrives as it was sent, by the debug text of each part.
    #[test]
    fn events_cross_the_interface_whole() {
        let delivery = Delivery {
            total: 1,
            total_before: 2,
            interval: Some(Span::from_ps(3)),
            limited: true,
            flight_at_send: 4,
            flight_before: 5,
            in_flight: 6,
            lost: 7,
            repairing: false,
        };
        let start = Start { now: Time::from_ps(1), srtt: Some(Span::ZERO), packet: Bytes::new(9000), seed: 12 };
        for event in [Event::Established(&start), Event::Ack(&ack()), Event::Delivery(&ack(), &delivery)] {
            let raw = RawEvent::of(event);
            assert_eq!(raw.with(|seen| format!("{seen:?}")), Some(format!("{event:?}")));
        }
        let rest = [
            Event::Grow(&ack()),
            Event::BacksOff,
            Event::Threshold { marked: true },
            Event::Threshold { marked: false },
            Event::Recovery,
            Event::Reduced,
            Event::Timeout,
            Event::TimeoutInReduction,
            Event::Undo { prior_cwnd: 13 },
            Event::Pace(Bytes::new(14)),
            Event::Burst,
            Event::Properties,
        ];
        for event in rest {
            assert_eq!(RawEvent::of(event).with(|seen| format!("{seen:?}")), Some(format!("{event:?}")));
        }
        assert_eq!(RawEvent { kind: 14, ..RawEvent::default() }.with(|_| ()), None);
    }

    #[test]
    fn calls_reach_the_controller_and_answers_come_back() {
        let mut echo = Instance::new(&TABLE).unwrap();
        let mut window = Window::new(10);
        assert_eq!(echo.call(Event::Grow(&ack()), &mut window), Ok(0));
        assert_eq!(window.cwnd, 12);
        assert_eq!(echo.call(Event::Threshold { marked: false }, &mut window), Ok(6));
        assert_eq!(echo.call(Event::Ack(&ack()), &mut window), Ok(0));
        assert_eq!(echo.call(Event::Threshold { marked: true }, &mut window), Ok(1));
        assert_eq!(echo.call(Event::Undo { prior_cwnd: 20 }, &mut window), Ok(21));
        assert_eq!(echo.call(Event::Pace(Bytes::new(3)), &mut window), Ok(24));
        let bits = echo.call(Event::Properties, &mut window).unwrap();
        let properties = Properties { ecn: crate::EcnUse::Classic, stamps: false, delivery: true };
        assert_eq!(Properties::from_bits(bits), Some(properties));
    }

    #[test]
    fn a_panic_stops_at_the_interface() {
        let mut echo = Instance::new(&TABLE).unwrap();
        let mut window = Window::new(200);
        let said = echo.call(Event::Threshold { marked: false }, &mut window);
        assert_eq!(said, Err("the window is 200".into()));
    }
}

//! A user's own controller: of a shared object, of Python, or of whatever else answers an [`Event`].
//!
//! A controller that fails (an error, a window of nothing) stops its run: the endpoint goes on with the window that it
//! has until whoever drives the run asks [`OwnConfig::take_fault`].

use super::{Ack, CongestionControl, Delivery, EcnUse, Start, Window};
use firstlight_cc::event::{Event, Properties};
use firstlight_units::{Bytes, Span};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// A user's controller for one connection.
pub trait OwnController: Debug + Send {
    /// Calls the controller, and returns its answer: a number, as [`Event`] says.
    ///
    /// # Errors
    /// Why the controller failed, in the user's terms.
    fn call(&mut self, event: Event<'_>, window: &mut Window) -> Result<u64, String>;
}

/// Makes a user's controllers, one for each connection.
pub trait OwnFactory: Debug + Send + Sync {
    /// A new controller.
    ///
    /// # Errors
    /// Why there is none, in the user's terms.
    fn build(&self) -> Result<Box<dyn OwnController>, String>;
}

/// A user's controller as the configuration of connections. Clones share the fault.
#[derive(Clone, Debug)]
pub struct OwnConfig(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    name: &'static str,
    factory: Box<dyn OwnFactory>,
    properties: Properties,
    /// The first failure that nobody has taken.
    fault: Mutex<Option<String>>,
}

impl PartialEq for OwnConfig {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl OwnConfig {
    /// The controllers of a factory, under the name that the experiment has for them.
    ///
    /// # Errors
    /// When the factory makes none, or what it makes does not answer.
    pub fn new(name: &'static str, factory: Box<dyn OwnFactory>) -> Result<Self, String> {
        let bits = factory.build()?.call(Event::Properties, &mut Window::new(10))?;
        let properties = Properties::from_bits(bits).ok_or("its properties are none that a controller can have")?;
        Ok(OwnConfig(Arc::new(Shared { name, factory, properties, fault: Mutex::default() })))
    }

    /// The factory's name in the experiment.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// How its controllers use ECN, as they said when the configuration was made.
    pub fn ecn(&self) -> EcnUse {
        self.0.properties.ecn
    }

    /// Why a controller failed since the last call, if one did.
    pub fn take_fault(&self) -> Option<String> {
        self.0.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn build(&self) -> Own {
        let controller = self.0.factory.build().map_err(|fault| self.fail(fault)).ok();
        Own { config: self.clone(), controller }
    }

    fn fail(&self, fault: String) {
        self.0.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
    }
}

/// One connection's own controller; nothing is left of one that failed.
#[derive(Debug)]
pub struct Own {
    config: OwnConfig,
    controller: Option<Box<dyn OwnController>>,
}

impl Own {
    /// The controller's answer; `otherwise` of one that fails, or has failed.
    fn call(&mut self, event: Event<'_>, window: &mut Window, otherwise: u64) -> u64 {
        let Some(controller) = &mut self.controller else { return otherwise };
        let before = *window;
        let answer = controller.call(event, window).and_then(|answer| {
            checked(event, answer, window)?;
            Ok(answer)
        });
        answer.unwrap_or_else(|fault| {
            *window = before;
            self.config.fail(fault);
            self.controller = None;
            otherwise
        })
    }

    /// An event that has nothing to do with the window.
    fn ask(&mut self, event: Event<'_>, otherwise: u64) -> u64 {
        self.call(event, &mut Window::new(1), otherwise)
    }
}

/// The problem of a controller's answer or of the window that it leaves: windows are whole packets, at least one.
fn checked(event: Event<'_>, answer: u64, window: &Window) -> Result<(), String> {
    let packets = |what: &str, packets: u64| match packets {
        0 => Err(format!("after {} {what} is 0: it is at least 1 packet", event.method())),
        _ if packets > u32::MAX.into() => {
            Err(format!("after {} {what} is {packets}: it is at most 2^32 - 1 packets", event.method()))
        }
        _ => Ok(()),
    };
    packets("window.cwnd", window.cwnd.into())?;
    packets("window.ssthresh", window.ssthresh.into())?;
    match event {
        Event::Threshold { .. } => packets("its result", answer),
        Event::Undo { .. } => packets("its result", answer),
        _ => Ok(()),
    }
}

impl CongestionControl for Own {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.call(Event::Ack(ack), window, 0);
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        self.call(Event::Grow(ack), window, 0);
    }

    fn ssthresh(&mut self, window: &Window, marked: bool) -> u32 {
        let otherwise = window.floor.max(1).into();
        self.call(Event::Threshold { marked }, &mut window.clone(), otherwise) as u32
    }

    fn on_recovery(&mut self, window: &mut Window) {
        self.call(Event::Recovery, window, 0);
    }

    fn on_established(&mut self, window: &mut Window, start: &Start) {
        self.call(Event::Established(start), window, 0);
    }

    fn on_delivery(&mut self, window: &mut Window, ack: &Ack, delivery: &Delivery) -> bool {
        self.call(Event::Delivery(ack, delivery), window, 0) != 0
    }

    fn backs_off(&mut self) -> bool {
        self.ask(Event::BacksOff, 0) != 0
    }

    fn on_reduced(&mut self, window: &mut Window) {
        self.call(Event::Reduced, window, 0);
    }

    fn on_timeout(&mut self, window: &mut Window) {
        self.call(Event::Timeout, window, 0);
    }

    fn on_timeout_in_reduction(&mut self) {
        self.ask(Event::TimeoutInReduction, 0);
    }

    fn undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        let otherwise = window.cwnd.max(prior_cwnd).into();
        self.call(Event::Undo { prior_cwnd }, &mut window.clone(), otherwise) as u32
    }

    fn ecn(&self) -> EcnUse {
        self.config.ecn()
    }

    fn wants_stamps(&self) -> bool {
        self.config.0.properties.stamps
    }

    fn wants_delivery(&self) -> bool {
        self.config.0.properties.delivery
    }

    fn pace(&mut self, bytes: Bytes) -> Span {
        Span::from_ps(self.ask(Event::Pace(bytes), 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CcConfig;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Counts the controllers that it makes; each uses ECN as DCTCP does.
    #[derive(Debug)]
    struct Counting(Arc<AtomicU32>);

    #[derive(Debug)]
    struct Precise;

    impl OwnFactory for Counting {
        fn build(&self) -> Result<Box<dyn OwnController>, String> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(Precise))
        }
    }

    impl OwnController for Precise {
        fn call(&mut self, _: Event<'_>, _: &mut Window) -> Result<u64, String> {
            Ok(Properties { ecn: EcnUse::Precise, stamps: false, delivery: false }.bits())
        }
    }

    #[test]
    fn questions_about_ecn_make_no_controller() {
        let made = Arc::new(AtomicU32::new(0));
        let config = CcConfig::Own(OwnConfig::new("mine", Box::new(Counting(made.clone()))).unwrap());
        assert_eq!([config.ecn(), config.ecn()], [EcnUse::Precise; 2]);
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }
}

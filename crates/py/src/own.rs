//! Congestion controls that are Python classes: `firstlight.run(..., congestion_control={"mine": Mine})`.
//!
//! A class has some of the methods of `firstlight.CongestionControl`; NewReno does what it leaves out.

use crate::error::SpecError;
use firstlight_transport::CcConfig;
use firstlight_transport::cc::{
    Ack, CcName, EcnUse, Event, NewReno, NewRenoConfig, OwnConfig, OwnController, OwnFactory, Properties, Window, call,
    suite,
};
use firstlight_units::Span;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use std::path::PathBuf;
use std::str::FromStr;

/// Methods that a class may have, in the order of [`Methods`].
const METHODS: [&str; 10] = [
    "on_established",
    "on_ack",
    "grow",
    "ssthresh",
    "on_recovery",
    "on_reduced",
    "on_timeout",
    "undo",
    "pace",
    "backs_off",
];

/// Which of [`METHODS`] a class has.
type Methods = [bool; METHODS.len()];

/// The congestion window of a connection, in packets.
#[pyclass(name = "Window", module = "firstlight")]
pub(crate) struct PyWindow(Window);

#[pymethods]
impl PyWindow {
    #[new]
    #[pyo3(signature = (cwnd = 10, ssthresh = u32::MAX, floor = 2))]
    fn new(cwnd: u32, ssthresh: u32, floor: u32) -> Self {
        PyWindow(Window { cwnd, ssthresh, credit: 0, floor })
    }

    #[getter]
    fn cwnd(&self) -> u32 {
        self.0.cwnd
    }

    #[setter]
    fn set_cwnd(&mut self, packets: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.cwnd = whole_packets("cwnd", packets)?;
        Ok(())
    }

    #[getter]
    fn ssthresh(&self) -> u32 {
        self.0.ssthresh
    }

    #[setter]
    fn set_ssthresh(&mut self, packets: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.ssthresh = whole_packets("ssthresh", packets)?;
        Ok(())
    }

    #[getter]
    fn floor(&self) -> u32 {
        self.0.floor
    }

    #[getter]
    fn in_slow_start(&self) -> bool {
        self.0.in_slow_start()
    }

    fn slow_start(&mut self, acked: u32) -> u32 {
        self.0.slow_start(acked)
    }

    fn additive_increase(&mut self, per: u32, acked: u32) {
        self.0.additive_increase(per, acked);
    }

    fn __repr__(&self) -> String {
        let Window { cwnd, ssthresh, floor, .. } = self.0;
        format!("Window(cwnd={cwnd}, ssthresh={ssthresh}, floor={floor})")
    }
}

/// The value that a window's attribute is set to.
fn whole_packets(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    value.extract().map_err(|_| {
        let found = value.repr().map_or("?".into(), |repr| repr.to_string());
        pyo3::exceptions::PyTypeError::new_err(format!(
            "window.{name} was set to {found}: expected a whole number of packets"
        ))
    })
}

/// The information in an ACK for the sender.
#[pyclass(name = "Ack", module = "firstlight", frozen, get_all)]
pub(crate) struct PyAck {
    now_us: f64,
    delivered: u32,
    advanced: u32,
    rtt_us: Option<f64>,
    srtt_us: Option<f64>,
    ece: bool,
    reducing: bool,
    open: bool,
    una: u64,
    next: u64,
    mss: u32,
}

#[pymethods]
impl PyAck {
    #[new]
    #[pyo3(signature = (*, now_us = 0.0, delivered = 1, advanced = 1, rtt_us = None, srtt_us = None, ece = false,
                        reducing = false, open = true, una = 1, next = 1, mss = 1448))]
    #[expect(clippy::too_many_arguments, reason = "the parts of an ACK, by name")]
    fn new(
        now_us: f64,
        delivered: u32,
        advanced: u32,
        rtt_us: Option<f64>,
        srtt_us: Option<f64>,
        ece: bool,
        reducing: bool,
        open: bool,
        una: u64,
        next: u64,
        mss: u32,
    ) -> Self {
        PyAck { now_us, delivered, advanced, rtt_us, srtt_us, ece, reducing, open, una, next, mss }
    }
}

fn us(span: Span) -> f64 {
    span.as_ps() as f64 / 1e6
}

impl From<&Ack> for PyAck {
    fn from(ack: &Ack) -> Self {
        let Ack { now, delivered, advanced, rtt, srtt, ece, reducing, open, una, next, mss, .. } = *ack;
        let now_us = now.as_ps() as f64 / 1e6;
        PyAck {
            now_us,
            delivered,
            advanced,
            rtt_us: rtt.map(us),
            srtt_us: srtt.map(us),
            ece,
            reducing,
            open,
            una,
            next,
            mss,
        }
    }
}

/// The controls of a dictionary from names to classes.
pub(crate) fn controllers(classes: &Bound<'_, PyDict>) -> PyResult<Vec<OwnConfig>> {
    classes.iter().map(|(name, class)| controller(&name.extract::<String>()?, &class)).collect()
}

/// Checks a controller, a class or the path of a shared object, with this number of random sequences of operations.
/// Returns what is wrong, if anything.
#[pyfunction]
pub(crate) fn check_controller(py: Python<'_>, controller: &Bound<'_, PyAny>, cases: u32) -> PyResult<Option<String>> {
    let own = match controller.extract::<PathBuf>() {
        Ok(path) => {
            let shown = path.display().to_string();
            firstlight_plugin::load(CcName::own(&shown).as_str(), &path)
                .map_err(|text| SpecError::new_err(format!("{shown}: {text}")))?
        }
        Err(_) => self::controller("own", controller)?,
    };
    Ok(py.detach(|| suite::check(&CcConfig::Own(own), cases)).err())
}

fn controller(name: &str, class: &Bound<'_, PyAny>) -> PyResult<OwnConfig> {
    let wrong = |text: String| SpecError::new_err(format!("congestion_control {name:?}: {text}"));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) {
        return Err(wrong("a name has lower-case letters, digits, _ and -, a letter first".into()));
    }
    if CcName::from_str(name).is_ok() {
        return Err(wrong("Firstlight has a control of this name: use another".into()));
    }
    let class = class.cast::<PyType>().map_err(|_| wrong("expected a class, not an object of one".into()))?;
    let methods: Methods = METHODS.map(|method| class.hasattr(method).unwrap_or(false));
    if !methods.contains(&true) {
        return Err(wrong(format!("the class has none of the methods {}", METHODS.join(", "))));
    }
    let ecn = match class.getattr("ecn").ok().map(|ecn| ecn.to_string()).as_deref() {
        None | Some("classic") => EcnUse::Classic,
        Some("precise") => EcnUse::Precise,
        Some(other) => return Err(wrong(format!("ecn = {other:?}: use \"classic\" or \"precise\""))),
    };
    let factory = PythonFactory { class: class.clone().unbind(), methods, ecn };
    OwnConfig::new(CcName::own(name).as_str(), Box::new(factory)).map_err(wrong)
}

#[derive(Debug)]
struct PythonFactory {
    class: Py<PyType>,
    methods: Methods,
    ecn: EcnUse,
}

impl OwnFactory for PythonFactory {
    fn build(&self) -> Result<Box<dyn OwnController>, String> {
        Python::attach(|py| {
            let instance = self.class.call0(py).map_err(|raised| traceback(py, raised))?;
            let reno = NewReno::new(NewRenoConfig {}, Span::ZERO);
            Ok(Box::new(PythonController { instance, methods: self.methods, ecn: self.ecn, reno }) as _)
        })
    }
}

#[derive(Debug)]
struct PythonController {
    instance: Py<PyAny>,
    methods: Methods,
    ecn: EcnUse,
    /// The controller's behaviour where the class has no method.
    reno: NewReno,
}

impl OwnController for PythonController {
    fn call(&mut self, event: Event<'_>, window: &mut Window) -> Result<u64, String> {
        if let Event::Properties = event {
            return Ok(Properties { ecn: self.ecn, stamps: false, delivery: false }.bits());
        }
        let method = event.method();
        let Some(at) = METHODS.iter().position(|known| *known == method).filter(|at| self.methods[*at]) else {
            return Ok(call(&mut self.reno, event, window));
        };
        Python::attach(|py| self.python(py, METHODS[at], event, window).map_err(|raised| traceback(py, raised)))
    }
}

impl PythonController {
    fn python(&self, py: Python<'_>, method: &str, event: Event<'_>, window: &mut Window) -> PyResult<u64> {
        let seen = Py::new(py, PyWindow(*window))?;
        let run = |argument: Option<Bound<'_, PyAny>>| match argument {
            Some(argument) => self.instance.call_method1(py, method, (&seen, argument)),
            None => self.instance.call_method1(py, method, (&seen,)),
        };
        let answer = match event {
            Event::Ack(ack) | Event::Grow(ack) => run(Some(Bound::new(py, PyAck::from(ack))?.into_any()))?,
            Event::Threshold { marked } => run(Some(marked.into_pyobject(py)?.to_owned().into_any()))?,
            Event::Undo { prior_cwnd } => run(Some(prior_cwnd.into_pyobject(py)?.into_any()))?,
            Event::Established(start) => run(Some(start.srtt.map(us).into_pyobject(py)?.into_any()))?,
            Event::Pace(bytes) => run(Some(bytes.get().into_pyobject(py)?.into_any()))?,
            _ => run(None)?,
        };
        *window = seen.borrow(py).0;
        let answer = answer.bind(py);
        let wrong = |what: &str| {
            let text =
                format!("{method} returned {}: {what}", answer.repr().map_or("?".into(), |repr| repr.to_string()));
            pyo3::exceptions::PyTypeError::new_err(text)
        };
        match event {
            Event::Threshold { .. } | Event::Undo { .. } => {
                answer.extract().map_err(|_| wrong("expected a whole number of packets"))
            }
            Event::BacksOff => answer.extract::<bool>().map(u64::from).map_err(|_| wrong("expected True or False")),
            Event::Pace(_) => {
                let wait: f64 = answer.extract().map_err(|_| wrong("expected a wait in microseconds"))?;
                if !(0.0..=1e9).contains(&wait) {
                    return Err(wrong("expected a wait of 0 to 1e9 microseconds"));
                }
                Ok((wait * 1e6) as u64)
            }
            _ => Ok(0),
        }
    }
}

/// An exception as Python prints it.
fn traceback(py: Python<'_>, raised: PyErr) -> String {
    let parts = (raised.get_type(py), raised.value(py), raised.traceback(py));
    let lines = py.import("traceback").and_then(|module| module.call_method1("format_exception", parts));
    let lines = lines.and_then(|lines| lines.extract::<Vec<String>>());
    lines.map_or_else(|_| raised.to_string(), |lines| format!("\n{}", lines.concat().trim_end()))
}

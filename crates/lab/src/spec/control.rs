//! Congestion control by its name, on either kind of host.
//!
//! A name means the same on both where both have it: `newreno` is what a kernel calls `reno`, and either name does.

use super::hosts::HostKind;
use super::values::Values;
use firstlight_transport::CcConfig;
use firstlight_units::{Rate, Span};

/// The names that experiments can write: ours, then those that only kernels have.
pub(crate) const NAMES: &[&str] = &[
    "newreno",
    "cubic",
    "dctcp",
    "retcp",
    "dx",
    "vegas",
    "timely",
    "swift",
    "bbr",
    "bic",
    "cdg",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "reno",
    "scalable",
    "veno",
    "westwood",
    "yeah",
];

/// Those that no kernel has.
const ONLY_OURS: &[&str] = &["dx", "timely", "swift"];

/// A connection's congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// One of ours.
    Simulated(CcConfig),
    /// A kernel's, by its name there.
    Linux(&'static str),
}

impl Control {
    /// The name by which its hosts know it.
    pub const fn name(&self) -> &'static str {
        match self {
            Control::Simulated(config) => config.name(),
            Control::Linux(name) => name,
        }
    }

    /// Whose it is.
    pub const fn hosts(&self) -> HostKind {
        match self {
            Control::Simulated(_) => HostKind::Simulated,
            Control::Linux(_) => HostKind::Linux,
        }
    }

    /// Ours, when it is one.
    pub const fn simulated(&self) -> Option<&CcConfig> {
        match self {
            Control::Simulated(config) => Some(config),
            Control::Linux(_) => None,
        }
    }

    /// The one of that name (of [`NAMES`]) for such hosts, with the parameters that its table gives.
    pub(crate) fn of(values: &Values, name: &str, hosts: HostKind, link: Rate) -> Result<Self, String> {
        match hosts {
            HostKind::Linux => kernel_name(name).map(Control::Linux),
            HostKind::Simulated => config(values, if name == "reno" { "newreno" } else { name }, link)
                .map(Control::Simulated)
                .ok_or_else(|| only_kernels(name)),
        }
    }
}

/// What a kernel calls it.
pub(crate) fn kernel_name(name: &str) -> Result<&'static str, String> {
    if ONLY_OURS.contains(&name) {
        return Err(format!("no kernel has {name}, and these hosts are Linux hosts: use another, or simulated hosts"));
    }
    let name = if name == "newreno" { "reno" } else { name };
    Ok(NAMES.iter().find(|known| **known == name).expect("the registry lets no other name through"))
}

fn only_kernels(name: &str) -> String {
    let ours = CcConfig::NAMES.join(", ");
    format!("{name} is a kernel's, and these hosts are simulated: use one of {ours}, or hosts.kind = \"linux\"")
}

/// Our controller of that name.
fn config(values: &Values, name: &str, link: Rate) -> Option<CcConfig> {
    let mut config = CcConfig::from_name(name)?;
    match &mut config {
        CcConfig::NewReno(_) => {}
        CcConfig::Cubic(cubic) => {
            cubic.beta = values.number("cubic.beta");
            cubic.fast_convergence = values.flag("cubic.fast_convergence");
            cubic.hystart = values.flag("cubic.hystart");
            cubic.coarse = values.flag("cubic.coarse");
        }
        CcConfig::Dctcp(dctcp) => {
            dctcp.g = values.number("dctcp.g");
            dctcp.initial_alpha = values.number("dctcp.initial_alpha");
        }
        CcConfig::ReTcp(retcp) => {
            retcp.alpha = values.number("retcp.alpha");
            retcp.beta = values.number("retcp.beta");
        }
        CcConfig::Dx(dx) => dx.headroom = values.span_opt("dx.headroom").unwrap_or_else(|| packet_time(values, link)),
        CcConfig::Vegas(vegas) => {
            vegas.alpha = values.packets("vegas.alpha");
            vegas.beta = values.packets("vegas.beta");
            vegas.gamma = values.packets("vegas.gamma");
        }
        CcConfig::Timely(timely) => {
            timely.line_rate = values.rate_opt("timely.line_rate").unwrap_or_else(|| line_rate(values, link));
            timely.step = values.rate("timely.step");
            timely.beta = values.number("timely.beta");
            timely.alpha = values.number("timely.alpha");
            timely.t_low = values.span("timely.t_low");
            timely.t_high = values.span("timely.t_high");
            timely.min_rtt = values.span("timely.min_rtt");
            timely.segment = values.size("timely.segment");
        }
        CcConfig::Swift(swift) => {
            swift.base_target = values.span("swift.base_target");
            swift.fs_range = values.span("swift.fs_range");
            swift.fs_min_cwnd = values.number("swift.fs_min_cwnd");
            swift.fs_max_cwnd = values.number("swift.fs_max_cwnd");
            swift.ai = values.number("swift.ai");
            swift.beta = values.number("swift.beta");
            swift.max_mdf = values.number("swift.max_mdf");
        }
    }
    Some(config)
}

/// The rate of the hosts' links by the hosts' own clocks, which `time_scale` does not stretch.
fn line_rate(values: &Values, link: Rate) -> Rate {
    let scale = values.integer("time_scale").max(1);
    Rate::from_bps((link.as_bps() / scale).max(1))
}

/// How long a packet takes at that rate.
fn packet_time(values: &Values, link: Rate) -> Span {
    line_rate(values, link).tx_time(values.size("hosts.mtu"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_controller_of_ours_has_a_name_here() {
        assert_eq!(&NAMES[..CcConfig::NAMES.len()], CcConfig::NAMES);
    }
}

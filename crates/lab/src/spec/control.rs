//! Congestion control by its name, on either kind of host.
//!
//! A name means the same on both where both have it: `newreno` is what a kernel calls `reno`, and either name does.

use super::hosts::HostKind;
use super::values::Values;
use firstlight_transport::CcConfig;

/// The names that experiments can write: ours, then those that only kernels have.
pub(crate) const NAMES: &[&str] = &[
    "newreno",
    "cubic",
    "dctcp",
    "retcp",
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
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

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
    pub(crate) fn of(values: &Values, name: &str, hosts: HostKind) -> Result<Self, String> {
        match hosts {
            HostKind::Linux => Ok(Control::Linux(kernel_name(name))),
            HostKind::Simulated => config(values, if name == "reno" { "newreno" } else { name })
                .map(Control::Simulated)
                .ok_or_else(|| only_kernels(name)),
        }
    }
}

/// What a kernel calls it.
pub(crate) fn kernel_name(name: &str) -> &'static str {
    let name = if name == "newreno" { "reno" } else { name };
    NAMES.iter().find(|known| **known == name).expect("the registry lets no other name through")
}

fn only_kernels(name: &str) -> String {
    let ours = CcConfig::NAMES.join(", ");
    format!("{name} is a kernel's, and these hosts are simulated: use one of {ours}, or hosts.kind = \"linux\"")
}

/// Our controller of that name.
fn config(values: &Values, name: &str) -> Option<CcConfig> {
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
    }
    Some(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_controller_of_ours_has_a_name_here() {
        assert_eq!(&NAMES[..CcConfig::NAMES.len()], CcConfig::NAMES);
    }
}

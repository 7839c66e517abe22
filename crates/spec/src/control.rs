//! The congestion control of a connection, on either kind of hosts.

use crate::host_kind::HostKind;
use crate::tables::Experiment;
use firstlight_transport::CcConfig;
use firstlight_transport::cc::{CcName, EcnUse, OwnConfig};
use firstlight_units::Rate;

/// A connection's congestion control.
#[derive(Clone, Debug, PartialEq)]
pub enum ConnectionControl {
    /// A controller of simulated hosts.
    Simulated(CcConfig),
    /// A kernel's controller, by its name there.
    Linux(&'static str),
}

impl ConnectionControl {
    /// The name by which its hosts know it.
    pub fn name(&self) -> &'static str {
        match self {
            ConnectionControl::Simulated(config) => config.name(),
            ConnectionControl::Linux(name) => name,
        }
    }

    /// How it uses ECN. A kernel's controller does as the simulated one of its name.
    pub fn ecn(&self) -> EcnUse {
        let of_kernel = |name: &str| CcConfig::from_name(name.parse::<CcName>().ok()?.simulated()?);
        let known = self.simulated().cloned().or_else(|| of_kernel(self.name()));
        known.map_or(EcnUse::Classic, |config| config.ecn())
    }

    /// The configuration on simulated hosts.
    pub const fn simulated(&self) -> Option<&CcConfig> {
        match self {
            ConnectionControl::Simulated(config) => Some(config),
            ConnectionControl::Linux(_) => None,
        }
    }

    /// The controller of that name for such hosts, whose link has the rate `link`; `own` are the user's.
    pub(crate) fn of(
        experiment: &Experiment,
        own: &[OwnConfig],
        name: CcName,
        hosts: HostKind,
        link: Rate,
    ) -> Result<Self, String> {
        if hosts == HostKind::Linux {
            return kernel_name(name).map(ConnectionControl::Linux);
        }
        if let Some(own) = own.iter().find(|own| own.name() == name.as_str()) {
            return Ok(ConnectionControl::Simulated(CcConfig::Own(own.clone())));
        }
        let config = experiment.cc.config(name, by_own_clock(experiment, link), experiment.hosts.mtu);
        let name = name.as_str();
        config.map(ConnectionControl::Simulated).ok_or_else(|| {
            format!("{name} exists in Linux kernels only, and these hosts are simulated: use another, or Linux hosts")
        })
    }
}

/// A link's rate by the hosts' own clocks, which are not stretched.
pub(crate) fn by_own_clock(experiment: &Experiment, link: Rate) -> Rate {
    Rate::from_bps((link.as_bps() / u64::from(experiment.time_scale)).max(1))
}

/// How the controller of that name uses ECN; `None` where simulated hosts have no such controller.
pub(crate) fn ecn_use(own: &[OwnConfig], name: CcName) -> Option<EcnUse> {
    let of_own = own.iter().find(|own| own.name() == name.as_str()).map(|own| CcConfig::Own(own.clone()));
    Some(of_own.or_else(|| CcConfig::from_name(name.simulated()?))?.ecn())
}

/// The controller's name in a kernel.
pub(crate) fn kernel_name(name: CcName) -> Result<&'static str, String> {
    let name_text = name.as_str();
    name.linux().ok_or_else(|| {
        format!("no kernel has {name_text}, and these hosts are Linux hosts: use another, or simulated hosts")
    })
}

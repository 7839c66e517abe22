//! The names of congestion controls in experiments, and their meaning on a Linux kernel.
//!
//! A name means the same on simulated and on Linux hosts where both have it. Linux calls NewReno `reno`: either name
//! does on either kind of hosts.

use super::{ALIASES, CcConfig};
use firstlight_units::{Bytes, Rate};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The name of a congestion control: one of [`CcName::all`], or that of a user's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CcName(&'static str);

impl CcName {
    /// The congestion control of flows that name none.
    pub const CUBIC: CcName = CcName("cubic");

    /// The description of a valid name in messages.
    pub const WHAT: &str = "a congestion control";

    /// All names: those of the controllers, then their other names.
    pub fn all() -> impl Iterator<Item = CcName> {
        CcConfig::NAMES.iter().chain(ALIASES).map(|name| CcName(name))
    }

    /// The name of a user's own controller. Each name is kept once, for good.
    pub fn own(name: &str) -> CcName {
        static NAMES: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = names.get(name).copied();
        CcName(known.unwrap_or_else(|| {
            let name: &'static str = Box::leak(name.into());
            names.insert(name);
            name
        }))
    }

    /// Whether it is the name of a user's own controller.
    pub fn is_own(self) -> bool {
        CcName::all().all(|name| name != self)
    }

    /// The name as a text.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The name of the controller on simulated hosts.
    pub fn simulated(self) -> Option<&'static str> {
        let name = if self.0 == "reno" { "newreno" } else { self.0 };
        CcConfig::NAMES.iter().copied().find(|known| *known == name)
    }

    /// The name of the controller in Linux; `None` where no kernel has it. A user's own may be a kernel module.
    pub fn linux(self) -> Option<&'static str> {
        if ALIASES.contains(&self.0) || self.is_own() { Some(self.0) } else { CcConfig::linux_name(self.0) }
    }
}

impl std::str::FromStr for CcName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || CcName::all().map(CcName::as_str).collect::<Vec<_>>().join(", ");
        CcName::all().find(|name| name.0 == text).ok_or_else(|| format!("'{text}' is not one of {}", names()))
    }
}

/// The meaning of a controller's table outside of the controller itself: on a Linux kernel, and on a host's link.
pub trait ControllerConfig: Copy + Default {
    /// Linux's name of the controller; `None` where no kernel has it.
    const LINUX: Option<&'static str>;
    /// The file of the kernel module, where the module is our own and not a part of Linux.
    const MODULE: Option<&'static str> = None;
    /// Whether the controller needs a kernel that our patch has changed.
    const NEEDS_OUR_KERNEL: bool = false;
    /// Whether our patch of the kernel makes the controller's least window a parameter, `tcp.min_window`.
    const TAKES_MIN_WINDOW: bool = false;
    /// Whether the controller has a floor of its own, so that `tcp.min_window` is none of its window.
    const HAS_OWN_FLOOR: bool = false;
    /// Settings of a host's network namespace that the controller needs: name and value.
    const SYSCTLS: &'static [(&'static str, &'static str)] = &[];

    /// The parameters of the kernel's module that take the keys of the table.
    fn parameters(&self) -> Vec<ModuleParameter> {
        vec![]
    }

    /// The configuration on a host whose link has `rate` by the host's own clock and takes packets of up to `mtu`: keys
    /// whose default is the link's have their values.
    #[must_use]
    fn on_link(self, _rate: Rate, _mtu: Bytes) -> Self {
        self
    }
}

/// A parameter of a kernel's module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleParameter {
    /// The key of the controller's table that the parameter takes.
    pub key: &'static str,
    /// The module.
    pub module: &'static str,
    /// The parameter's name.
    pub name: &'static str,
    /// The parameter's value, or why the kernel cannot take the key's.
    pub value: Result<u32, String>,
}

impl ModuleParameter {
    /// The parameter `key` of `module`, which has the key's own name.
    pub fn new(module: &'static str, key: &'static str, value: impl Into<u32>) -> Self {
        ModuleParameter { key, module, name: key, value: Ok(value.into()) }
    }

    /// The parameter `name` of `module`, 1 or 0, which takes `key`.
    pub fn switch(module: &'static str, key: &'static str, name: &'static str, on: bool) -> Self {
        ModuleParameter { key, module, name, value: Ok(on.into()) }
    }
}

/// The needs of a controller on a Linux kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinuxControl {
    /// The name of the controller's table.
    pub table: &'static str,
    /// The file of our own kernel module, if the controller is one.
    pub module: Option<&'static str>,
    /// Whether the module needs a kernel that our patch has changed.
    pub needs_our_kernel: bool,
    /// Whether the kernel's module has `tcp.min_window` as its least window.
    pub takes_min_window: bool,
    /// Settings of the hosts' network namespaces.
    pub sysctls: &'static [(&'static str, &'static str)],
    /// Parameters of the kernel's module.
    pub parameters: Vec<ModuleParameter>,
}

#[cfg(feature = "spec")]
mod schema {
    use super::CcName;
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde::de::{Deserialize, Deserializer};
    use serde::ser::{Serialize, Serializer};
    use std::borrow::Cow;

    impl Serialize for CcName {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(self.0)
        }
    }

    impl<'de> Deserialize<'de> for CcName {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            // The reading of an experiment has found the name among the controllers or the user's own.
            let name = Cow::<str>::deserialize(deserializer)?;
            Ok(name.parse().unwrap_or_else(|_| CcName::own(&name)))
        }
    }

    impl JsonSchema for CcName {
        fn schema_name() -> Cow<'static, str> {
            "CcName".into()
        }

        fn inline_schema() -> bool {
            true
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            let names: Vec<&str> = CcName::all().map(CcName::as_str).collect();
            let own = json_schema!({ "pattern": "\\.so$" });
            json_schema!({ "type": "string", "anyOf": [{ "enum": names }, own], "x-type": CcName::WHAT })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_name_of_newreno_does_on_either_kind_of_hosts() {
        for name in ["newreno", "reno"] {
            let name: CcName = name.parse().unwrap();
            assert_eq!((name.simulated(), name.linux()), (Some("newreno"), Some("reno")));
        }
    }

    #[test]
    fn every_name_is_somebody_s() {
        assert!(CcName::all().all(|name| name.simulated().is_some() || name.linux().is_some()));
        assert_eq!(CcName::CUBIC.as_str().parse(), Ok(CcName::CUBIC));
        assert_eq!("bbr".parse().map(CcName::simulated), Ok(Some("bbr")));
        assert_eq!("timely".parse().map(CcName::linux), Ok(None));
    }
}

//! Loads a user's congestion control from a shared object (`tcp.cc = "./target/release/libmine.so"`), by the interface
//! of [`firstlight_cc::abi`].
//!
//! An object stays loaded until the process ends. An object that was built again has another inode, and is loaded
//! beside the old one.

#![expect(unsafe_code, reason = "loads and calls code of another compilation")]

use firstlight_cc::Window;
use firstlight_cc::abi::{ControllerTable, Instance, SYMBOL, VERSION};
use firstlight_cc::event::Event;
use firstlight_transport::cc::{OwnConfig, OwnController, OwnFactory};
use libloading::Library;
use std::path::Path;

/// The controllers of the shared object at `path`, under the name that the experiment has for it.
///
/// # Errors
/// When the file is no shared object, has no controller, or was built for another version of the interface.
pub fn load(name: &'static str, path: &Path) -> Result<OwnConfig, String> {
    let path = path.canonicalize().map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    // SAFETY: the user names the file in order that its code runs.
    let library = unsafe { Library::new(&path) };
    let library = library.map_err(|error| format!("cannot be loaded as a shared object: {error}"))?;
    // SAFETY: a symbol of this name is a `ControllerTable`, whose version comes first in each version of the interface.
    let table = unsafe { library.get::<*const ControllerTable>(SYMBOL.as_bytes()) }.map(|symbol| *symbol);
    let table = table.map_err(|_| {
        format!("has no controller: write firstlight_cc::congestion_control!(..) in it, which makes {SYMBOL}")
    })?;
    // SAFETY: as above. The library is never unloaded.
    let table: &'static ControllerTable = unsafe { &*table };
    if table.version != VERSION {
        return Err(format!(
            "was built for version {} of the interface, and this is version {VERSION}: build it with the crate \
             firstlight-cc of this version",
            table.version
        ));
    }
    Box::leak(Box::new(library));
    OwnConfig::new(name, Box::new(Loaded { table }))
}

#[derive(Debug)]
struct Loaded {
    table: &'static ControllerTable,
}

impl OwnFactory for Loaded {
    fn build(&self) -> Result<Box<dyn OwnController>, String> {
        let instance = Instance::new(self.table).ok_or("it panicked when it was made")?;
        Ok(Box::new(LoadedController(instance)))
    }
}

#[derive(Debug)]
struct LoadedController(Instance);

impl OwnController for LoadedController {
    fn call(&mut self, event: Event<'_>, window: &mut Window) -> Result<u64, String> {
        self.0.call(event, window).map_err(|reason| format!("it panicked: {reason}"))
    }
}

//! Kernel modules and their parameters.

use crate::failure::{Context, Failure};
use crate::mounts;
use firstlight_linux::{Parameter, Plan};
use nix::kmod::{ModuleInitFlags, finit_module};
use std::ffi::CString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Loads the plan's modules, each with its parameters; those of the kernel's own parts stood on its command line.
pub fn load(plan: &Plan) -> Result<(), Failure> {
    for file in &plan.modules {
        let folder = crate::environment("FIRSTLIGHT_MODULES")?;
        mounts::uncover(&folder, file)?;
        one(&folder.join(file), &plan.parameters)?;
    }
    let modules: Vec<String> = plan.modules.iter().map(|file| module_name(Path::new(file))).collect();
    plan.parameters.iter().filter(|parameter| !modules.contains(&parameter.module)).try_for_each(check)
}

/// Lets each host's namespace choose any of the kernel's congestion controls as its own; else most are refused there.
pub(crate) fn allow_controls() -> Result<(), Failure> {
    const CONTROLS: &str = "/proc/sys/net/ipv4/tcp_";
    let (available, allowed) =
        (format!("{CONTROLS}available_congestion_control"), format!("{CONTROLS}allowed_congestion_control"));
    let all = fs::read_to_string(&available).context(|| format!("cannot read {available}"))?;
    fs::write(&allowed, all).context(|| format!("cannot write {allowed}"))
}

/// `retcp` of `retcp.ko`.
fn module_name(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().replace('-', "_")
}

fn one(path: &Path, parameters: &[Parameter]) -> Result<(), Failure> {
    let own = parameters.iter().filter(|parameter| parameter.module == module_name(path));
    let arguments: Vec<String> = own.map(|parameter| format!("{}={}", parameter.name, parameter.value)).collect();
    let arguments = CString::new(arguments.join(" ")).context(|| "a parameter has a zero byte".into())?;
    let rebuild = "`firstlight kernel build` makes the modules with the kernel";
    let file = File::open(path).context(|| format!("cannot open the module {} ({rebuild})", path.display()))?;
    finit_module(file, &arguments, ModuleInitFlags::empty()).context(|| {
        format!("the kernel does not take the module {} with '{}'", path.display(), arguments.to_string_lossy())
    })
}

/// Parts that are built in read their parameters when the kernel starts; CUBIC computes with them only then. One that
/// no part has is passed over there.
fn check(parameter: &Parameter) -> Result<(), Failure> {
    let Parameter { module, name, value } = parameter;
    let path: PathBuf = ["/sys/module", module, "parameters", name].iter().collect();
    let found = fs::read_to_string(&path).context(|| format!("this kernel has no parameter {name} of {module}"))?;
    if found.trim() == value {
        return Ok(());
    }
    Err(Failure::new(format!("this kernel's {module} has {name} = {}, and not {value}, as it was told", found.trim())))
}

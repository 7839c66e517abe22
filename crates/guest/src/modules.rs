//! Kernel modules and their parameters.

use crate::failure::{Context, GuestFailure};
use crate::mounts;
use firstlight_linux::{Parameter, Plan};
use nix::kmod::{ModuleInitFlags, finit_module};
use std::ffi::CString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Loads the plan's modules with their parameters, and checks the parameters of built-in parts, which the kernel took
/// from its command line.
pub fn load(plan: &Plan) -> Result<(), GuestFailure> {
    for file in &plan.modules {
        let folder = crate::environment("FIRSTLIGHT_MODULES")?;
        mounts::uncover(&folder, file)?;
        load_one(&folder.join(file), &plan.parameters)?;
    }
    let modules: Vec<String> = plan.modules.iter().map(|file| module_name(Path::new(file))).collect();
    plan.parameters.iter().filter(|parameter| !modules.contains(&parameter.module)).try_for_each(check)
}

/// Lets each host's namespace choose any of the kernel's congestion controls; by default it may choose few of them.
pub(crate) fn allow_controls() -> Result<(), GuestFailure> {
    const CONTROLS: &str = "/proc/sys/net/ipv4/tcp_";
    let (available, allowed) =
        (format!("{CONTROLS}available_congestion_control"), format!("{CONTROLS}allowed_congestion_control"));
    let all = fs::read_to_string(&available).context(|| format!("cannot read {available}"))?;
    fs::write(&allowed, all).context(|| format!("cannot write {allowed}"))
}

/// The module's name: `retcp` for `retcp.ko`.
fn module_name(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().replace('-', "_")
}

fn load_one(path: &Path, parameters: &[Parameter]) -> Result<(), GuestFailure> {
    let own = parameters.iter().filter(|parameter| parameter.module == module_name(path));
    let arguments: Vec<String> = own.map(|parameter| format!("{}={}", parameter.name, parameter.value)).collect();
    let arguments =
        CString::new(arguments.join(" ")).context(|| "the value of a module parameter has a zero byte".into())?;
    let rebuild = "`firstlight kernel build` makes the modules with the kernel";
    let file = File::open(path).context(|| format!("cannot open the module {} ({rebuild})", path.display()))?;
    finit_module(file, &arguments, ModuleInitFlags::empty())
        .context(|| format!("the kernel refuses the module {} with '{}'", path.display(), arguments.to_string_lossy()))
}

/// Checks a parameter of a built-in part. Such parts read their parameters when the kernel starts; CUBIC uses them only
/// then. The kernel ignores parameters that no part has.
fn check(parameter: &Parameter) -> Result<(), GuestFailure> {
    let Parameter { module, name, value } = parameter;
    let path: PathBuf = ["/sys/module", module, "parameters", name].iter().collect();
    let found = fs::read_to_string(&path).context(|| {
        format!("this kernel has no parameter {module}.{name}: remove it, or choose another linux.version")
    })?;
    if found.trim() == value {
        return Ok(());
    }
    Err(GuestFailure::new(format!(
        "this kernel's {module} has {name} = {}, not {value} as the experiment says",
        found.trim()
    )))
}

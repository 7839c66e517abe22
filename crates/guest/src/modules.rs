//! Kernel modules and their parameters.

use crate::failure::{Context, GuestFailure};
use firstlight_linux::{Parameter, Plan};
use nix::kmod::{ModuleInitFlags, finit_module};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Loads the plan's modules with their parameters, and checks the parameters of built-in parts, which the kernel took
/// from its command line.
pub fn load(plan: &Plan, directory: &Path) -> Result<(), GuestFailure> {
    plan.modules.iter().try_for_each(|file| load_one(&directory.join("modules").join(file), &plan.parameters))?;
    let modules: Vec<String> = plan.modules.iter().map(|file| module_name(Path::new(file))).collect();
    plan.parameters.iter().filter(|parameter| !modules.contains(&parameter.module)).try_for_each(check)
}

/// Lets each host's namespace choose any of the kernel's congestion controls; by default it may choose few of them.
/// Those that the plan names must be there.
pub(crate) fn allow_controls(plan: &Plan) -> Result<(), GuestFailure> {
    const CONTROLS: &str = "/proc/sys/net/ipv4/tcp_";
    const DEFAULT: &str = "net.ipv4.tcp_congestion_control";
    let (available, allowed) =
        (format!("{CONTROLS}available_congestion_control"), format!("{CONTROLS}allowed_congestion_control"));
    let all = fs::read_to_string(&available).context(|| format!("cannot read {available}"))?;
    let sysctls = plan.hosts.iter().flat_map(|host| &host.sysctls).filter(|sysctl| sysctl.name == DEFAULT);
    let named = plan.flows.iter().map(|flow| &flow.cc).chain(sysctls.map(|sysctl| &sysctl.value));
    let known: BTreeSet<&str> = all.split_whitespace().collect();
    if let Some(name) = named.into_iter().find(|name| !known.contains(name.as_str())) {
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        let text =
            format!("no congestion control of the hosts' kernel is called {name}: it and its modules have {known}");
        return Err(GuestFailure::new(text));
    }
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
    let file = File::open(path).context(|| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("cannot open the module {name} ({rebuild})")
    })?;
    let mut log = KernelLog::from_now();
    finit_module(file, &arguments, ModuleInitFlags::empty()).context(|| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let with = if arguments.is_empty() { String::new() } else { format!(" with {}", arguments.to_string_lossy()) };
        let said = log.as_mut().map(KernelLog::said).filter(|said| !said.is_empty());
        format!(
            "the kernel refuses the module {name}{with}{}",
            said.map_or_else(String::new, |said| format!(" ({said})"))
        )
    })
}

/// The kernel's log from a moment on.
struct KernelLog(File);

impl KernelLog {
    /// Opens the kernel's log at its end; `None` where the kernel has no such device.
    fn from_now() -> Option<Self> {
        const O_NONBLOCK: i32 = nix::fcntl::OFlag::O_NONBLOCK.bits();
        let mut log = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open("/dev/kmsg").ok()?;
        log.seek(SeekFrom::End(0)).ok()?;
        Some(KernelLog(log))
    }

    /// The kernel's log since [`KernelLog::from_now`], on one line, without the notice that a module is not part of the
    /// kernel.
    fn said(&mut self) -> String {
        let (mut lines, mut record) = (vec![], [0; 8192]);
        while let Ok(length @ 1..) = self.0.read(&mut record) {
            // A record is "level,number,time,flags;text".
            let record = String::from_utf8_lossy(&record[..length]);
            let text = record.split_once(';').map_or("", |(_, text)| text);
            lines.extend(text.lines().next().filter(|line| !line.contains("taints kernel")).map(String::from));
        }
        lines.join("; ")
    }
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

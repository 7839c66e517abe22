//! A whole run through the C interface, with a test kernel that records all calls.
#![allow(unsafe_code)]

use firstlight_lab::spec::OverrideValue;
use firstlight_lab::{Spec, plan};
use firstlight_linux::{GuestMessage, ReportTime};
use firstlight_uml::{ABI, AbiConnection, AbiEngine, AbiHost, AbiProcessors, NEVER, firstlight_open};
use firstlight_version::version;
use serde_json::{Value as Json, json};
use std::ffi::{CStr, CString, c_char, c_uint, c_void};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use tempfile::TempDir;

const STAR: &str = r#"
duration = "1ms"
warmup = "100us"
time_scale = 2
[fabric]
kind = "star"
hosts = 3
[hosts]
kind = "linux"
rate = "10Gbps"
delay = "1us"
[switch]
queue = 100
[[flows]]
from = "host0"
to = "host2"
cc = "bbr"
size = "10kB"
start = "10us"
[[flows]]
from = "host1"
to = "host2"
[[program]]
on = "host1"
run = "true"
[[program]]
on = "host0"
run = "sleep 1"
server = true
[measure]
tcp_info = "100us"
"#;

/// Start of the run on the kernel's clock, in nanoseconds.
const ZERO: u64 = 5_000_000;

/// Calls of the engine to the kernel.
struct Calls {
    log: Vec<String>,
    delivered: Vec<(u32, usize)>,
    dropped: Vec<usize>,
    sent: Vec<usize>,
    rooms: Vec<u32>,
}

impl Calls {
    const EMPTY: Calls = Calls { log: vec![], delivered: vec![], dropped: vec![], sent: vec![], rooms: vec![] };
}

static CALLS: Mutex<Calls> = Mutex::new(Calls::EMPTY);

/// A process has one kernel and one engine: one test uses them at a time.
static KERNEL: Mutex<()> = Mutex::new(());

fn calls() -> MutexGuard<'static, Calls> {
    CALLS.lock().unwrap_or_else(|broken| broken.into_inner())
}

unsafe extern "C" fn on_stamp(_: *mut c_void, _: c_uint, _: c_uint) {}

unsafe extern "C" fn on_deliver(device: c_uint, packet: *mut c_void, _: c_uint) {
    calls().delivered.push((device, packet as usize));
}

unsafe extern "C" fn on_drop(packet: *mut c_void) {
    calls().dropped.push(packet as usize);
}

unsafe extern "C" fn on_sent(packet: *mut c_void) {
    calls().sent.push(packet as usize);
}

unsafe extern "C" fn on_room(device: c_uint) {
    calls().rooms.push(device);
}

unsafe extern "C" fn on_processors(device: c_uint, done: *mut AbiProcessors) {
    // SAFETY: the engine gives a place for them.
    unsafe { *done = AbiProcessors { busy: 3_000_000, card: 2_000_000, interrupts: device.into() } };
}

unsafe extern "C" fn on_log(line: *const c_char) {
    // SAFETY: the engine gives a text that ends with a zero.
    calls().log.push(unsafe { CStr::from_ptr(line) }.to_string_lossy().into_owned());
}

static HOST: AbiHost = AbiHost {
    abi: ABI,
    stamp: on_stamp,
    deliver: on_deliver,
    drop: on_drop,
    sent: on_sent,
    room: on_room,
    processors: on_processors,
    log: on_log,
};

struct BootedKernel {
    engine: &'static AbiEngine,
    _alone: MutexGuard<'static, ()>,
}

fn alone() -> MutexGuard<'static, ()> {
    let alone = KERNEL.lock().unwrap_or_else(|broken| broken.into_inner());
    *calls() = Calls::EMPTY;
    alone
}

fn open(host: &AbiHost, directory: &Path) -> Option<&'static AbiEngine> {
    let path = CString::new(directory.to_str().unwrap()).unwrap();
    // SAFETY: both are what they should be; an engine lives for ever.
    unsafe { firstlight_open(host, path.as_ptr()).as_ref() }
}

impl BootedKernel {
    fn boot(directory: &Path) -> BootedKernel {
        let alone = alone();
        let engine = open(&HOST, directory).unwrap_or_else(|| panic!("{:?}", calls().log));
        BootedKernel { engine, _alone: alone }
    }

    fn control(&self, message: &GuestMessage, now: u64) -> i32 {
        self.raw(&message.encode(), now)
    }

    fn raw(&self, bytes: &[u8], now: u64) -> i32 {
        // SAFETY: so many bytes lie there.
        unsafe { (self.engine.control)(bytes.as_ptr(), bytes.len() as _, now) }
    }

    /// Sends a frame. Returns whether the device may send the next one.
    fn send(&self, device: u32, packet: usize, frame: &[u8], now: u64) -> bool {
        // SAFETY: so many bytes lie there.
        unsafe {
            (self.engine.send)(
                device,
                packet as *mut c_void,
                frame.as_ptr(),
                frame.len() as u32,
                frame.len() as u32,
                now,
            ) != 0
        }
    }

    /// Runs the engine at each time that it asks for, up to `until`.
    fn go(&self, until: u64) {
        while (self.engine.next)() <= until {
            (self.engine.run)((self.engine.next)());
        }
    }
}

/// A run's directory as the front end writes it.
fn directory(text: &str, set: &[(&str, &str)], capture: Option<&str>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let overrides: Vec<_> = set.iter().map(|(k, v)| (k.to_string(), OverrideValue::Text(v.to_string()))).collect();
    let spec = Spec::read(text, "test.toml", &overrides).unwrap_or_else(|error| panic!("{error}"));
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    let capture = capture.map(|name| folder.path().join(name));
    let set: serde_json::Map<_, _> = set.iter().map(|(k, v)| (k.to_string(), json!(v))).collect();
    let run = json!({
        "version": version(), "path": "test.toml", "overrides": set, "sweep": false, "capture": capture, "seed": 1,
    });
    write("experiment.toml", text.into());
    write("run.json", run.to_string());
    write("plan.json", serde_json::to_string(&plan(&spec).unwrap()).unwrap());
    folder
}

fn read(folder: &TempDir, name: &str) -> Json {
    let text = std::fs::read_to_string(folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_str(&text).unwrap()
}

fn column<'a>(outcome: &'a Json, table: &str, column: &str) -> &'a Json {
    let find = |list: &'a Json, name: &str| list.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
    &find(&find(&outcome["tables"], table)["columns"], column)["values"]
}

fn frame(to: u8, size: usize) -> Vec<u8> {
    let builder = etherparse::PacketBuilder::ethernet2([2; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, to + 1], 64);
    let mut frame = vec![];
    builder.tcp(10_000, 10_000, 3, 4).ack(5).write(&mut frame, &vec![0; size - 40]).unwrap();
    frame
}

/// A `struct tcp_info` with these fields: (offset, bytes).
fn info(fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut info = vec![0; 248];
    for (at, bytes) in fields {
        info[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    info
}

fn state(flow: u32, sender: bool, when: ReportTime, info: &[u8]) -> Vec<u8> {
    GuestMessage::FlowState { flow, sender, when, info }.encode()
}

#[test]
fn a_device_waits_for_room() {
    let folder = directory(STAR, &[("adapter.send_buffer", "1kB")], None);
    let kernel = BootedKernel::boot(folder.path());
    assert!(kernel.send(0, 1, &frame(2, 1000), 900), "nothing is sent before the start");
    assert_eq!(kernel.control(&GuestMessage::Start, ZERO), 0);
    assert!(kernel.send(0, 2, &frame(2, 999), ZERO) && !kernel.send(0, 3, &frame(2, 999), ZERO));
    let reported = || {
        let calls = calls();
        (calls.sent.clone(), calls.rooms.clone())
    };
    // 999 bytes last 799.2 ns, stretched twofold: then the interface holds less than 1,000 bytes.
    kernel.go(ZERO + 1_598);
    assert_eq!(reported(), (vec![], vec![]));
    kernel.go(ZERO + 1_599);
    assert_eq!(reported(), (vec![2], vec![0]));
    kernel.go(ZERO + 100_000);
    assert_eq!(reported(), (vec![2, 3], vec![0]));
}

#[test]
fn the_work_of_processors_is_a_table_where_hosts_have_some() {
    for (costs, expected) in [(&[][..], None), (&[("linux.cpu.syscall", "1us")][..], Some(json!([1.5, 1.5, 1.5])))] {
        let folder = directory(STAR, costs, None);
        let kernel = BootedKernel::boot(folder.path());
        assert_eq!(kernel.control(&GuestMessage::Start, ZERO), 0);
        assert_eq!(kernel.control(&GuestMessage::Finish, ZERO + 2_000_000), 0, "{:?}", calls().log);
        let outcome = read(&folder, "outcome.json");
        let has = outcome["tables"].as_array().unwrap().iter().any(|table| table["name"] == "processors");
        assert_eq!(has, expected.is_some());
        if let Some(busy) = expected {
            assert_eq!(column(&outcome, "processors", "busy_us"), &busy);
            assert_eq!(column(&outcome, "processors", "card_us"), &json!([1.0, 1.0, 1.0]));
            assert_eq!(column(&outcome, "processors", "interrupts"), &json!([0, 1, 2]));
        }
    }
}

#[test]
fn a_run_goes_from_its_directory_to_its_result() {
    let folder = directory(STAR, &[], Some("packets.pcapng"));
    let kernel = BootedKernel::boot(folder.path());
    assert_eq!((kernel.engine.abi, kernel.engine.devices, (kernel.engine.next)()), (ABI, 3, NEVER));
    kernel.send(0, 1, &frame(2, 100), 900);
    assert_eq!(kernel.control(&GuestMessage::Start, ZERO), 0);
    kernel.go(ZERO + 20_000);
    // 1000 bytes last 800 ns, the link is 1 us long; both twice, both stretched twofold.
    kernel.send(0, 2, &frame(2, 1000), ZERO + 20_000);
    kernel.send(1, 3, &[&[0; 12][..], &[8, 6], &[0; 20]].concat(), ZERO + 20_000);
    kernel.go(ZERO + 27_199);
    assert!(calls().delivered.is_empty());
    kernel.go(ZERO + 27_200);
    let Calls { delivered, sent, dropped, .. } = std::mem::replace(&mut *calls(), Calls::EMPTY);
    assert_eq!((delivered, sent, dropped), (vec![(2, 2)], vec![2], vec![1, 3]));
    assert_eq!(kernel.control(&GuestMessage::FlowComplete { flow: 0 }, ZERO + 60_000), 0);
    assert_eq!(kernel.control(&GuestMessage::ProgramEnded { program: 0, code: 3 }, ZERO + 50_000), 0);
    kernel.go(ZERO + 200_000);
    let received = |n: u64| info(&[(128, &n.to_ne_bytes())]);
    assert_eq!(kernel.raw(&state(1, false, ReportTime::WarmupEnd, &received(1000)), ZERO + 200_000), 0);
    let cwnd = info(&[
        (1, &[3]),
        (120, &501u64.to_ne_bytes()),
        (80, &7u32.to_ne_bytes()),
        (68, &400u32.to_ne_bytes()),
        (104, &[255; 8]),
        (160, &125_000_000u64.to_ne_bytes()),
    ]);
    assert_eq!(kernel.raw(&state(1, true, ReportTime::Sample, &cwnd), ZERO + 200_000), 0);
    assert_eq!(kernel.raw(&state(1, false, ReportTime::Sample, &cwnd), ZERO + 200_000), 0);
    kernel.send(1, 4, &frame(2, 1000), ZERO + 1_999_900);
    kernel.go(ZERO + 3_000_000);
    assert_eq!(calls().dropped, [4], "the end gives back what is inside");
    assert_eq!((kernel.engine.next)(), NEVER);
    assert_eq!(kernel.raw(&state(1, false, ReportTime::RunEnd, &received(181_000)), ZERO + 2_000_000), 0);
    assert_eq!(kernel.raw(&state(1, true, ReportTime::RunEnd, &cwnd), ZERO + 2_000_000), 0);
    assert_eq!(
        kernel.control(&GuestMessage::ProgramEnded { program: 1, code: 137 }, ZERO + 2_000_000),
        0,
        "at the end, by us"
    );
    assert_eq!(kernel.control(&GuestMessage::Finish, ZERO + 2_000_000), 0, "{:?}", calls().log);

    let outcome = read(&folder, "outcome.json");
    let manifest = &outcome["manifest"];
    assert_eq!((&manifest["elapsed_us"], &manifest["measured_us"]), (&json!(1000.0), &json!(900.0)));
    assert_eq!((&manifest["hosts"]["simulated"], &manifest["hosts"]["linux"]), (&json!(0), &json!(2)));
    let frames = json!({
        "sent": 4, "delivered": 1, "dropped": 0, "held": 1, "early": 1, "late": 0, "not_ip": 1, "malformed": 0,
        "elsewhere": 0,
    });
    assert_eq!(manifest["hosts"]["frames"], frames);
    assert_eq!((&manifest["finished"], &manifest["conservation"]["ok"]), (&json!(true), &json!(true)));
    assert_eq!(column(&outcome, "flows", "cc"), &json!(["bbr", "cubic"]));
    assert_eq!(column(&outcome, "flows", "fct_us"), &json!([20.0, null]));
    assert_eq!(column(&outcome, "flows", "srtt_us"), &json!([null, 200.0]));
    assert_eq!(column(&outcome, "flows", "undos"), &json!([-1, -1]));
    assert_eq!(column(&outcome, "flows", "bytes_acked"), &json!([0, 500]), "without the SYN");
    assert_eq!(column(&outcome, "tcp_info", "cwnd_packets"), &json!([7]));
    assert_eq!(column(&outcome, "tcp_info", "time_us"), &json!([100.0]));
    assert_eq!(column(&outcome, "tcp_info", "ca_state"), &json!(["recovery"]));
    assert_eq!(
        (column(&outcome, "tcp_info", "pacing_gbps"), column(&outcome, "tcp_info", "delivery_gbps")),
        (&json!([null]), &json!([2.0]))
    );
    assert_eq!(column(&outcome, "programs", "exit_code"), &json!([3, -1]));
    assert_eq!(column(&outcome, "programs", "end_us"), &json!([30.0, null]));
    let goodput = column(&outcome, "summary", "value")
        [column(&outcome, "summary", "metric").as_array().unwrap().iter().position(|m| m == "goodput_gbps").unwrap()]
    .clone();
    assert_eq!(goodput, json!(180_000.0 * 8e-9 / 900e-6));
    let warnings = manifest["warnings"].to_string();
    assert!(warnings.contains("on host1 ended with exit code 3"), "{warnings}");
    let progress = std::fs::read(folder.path().join("progress")).unwrap();
    let number = |at: usize| u64::from_le_bytes(progress[at..at + 8].try_into().unwrap());
    assert!(progress.len() == 16 && number(0) == 2_000_000 && number(8) >= 3, "{progress:?}");
    assert!(std::fs::metadata(folder.path().join("packets.pcapng")).unwrap().len() > 350);
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 6, "nothing is left but inputs, progress, capture and result");
}

/// The rows of table `throughput` when flow 1 reports so many bytes at these times of the hosts' clock, the last time
/// at the end of the run.
fn throughput(every: &str, reported: &[(u64, u64)], end: (u64, u64)) -> Vec<(f64, i64, f64)> {
    let folder = directory(STAR, &[("measure.throughput", every)], None);
    let kernel = BootedKernel::boot(folder.path());
    assert_eq!(kernel.control(&GuestMessage::Start, ZERO), 0);
    let report = |when: ReportTime, (at, bytes): (u64, u64)| {
        kernel.go(ZERO + at);
        let info = info(&[(128, &bytes.to_ne_bytes())]);
        assert_eq!(kernel.raw(&state(1, false, when, &info), ZERO + at), 0, "{:?}", calls().log);
    };
    for one in reported {
        report(ReportTime::Sample, *one);
        assert_eq!(kernel.control(&GuestMessage::Interval, ZERO + one.0), 0, "{:?}", calls().log);
    }
    report(ReportTime::RunEnd, end);
    assert_eq!(kernel.control(&GuestMessage::Finish, ZERO + end.0), 0, "{:?}", calls().log);
    let outcome = read(&folder, "outcome.json");
    let rows = ["time_us", "flow", "goodput_gbps"].map(|name| column(&outcome, "throughput", name).as_array().unwrap());
    let rate = |n: usize| (rows[2][n].as_f64().unwrap() * 1e9).round() / 1e9;
    let row = |n: usize| (rows[0][n].as_f64().unwrap(), rows[1][n].as_i64().unwrap(), rate(n));
    (0..rows[0].len()).map(row).collect()
}

/// Expected: 37,500 bytes in 300 us are 1 Gb/s. The hosts' clock runs twice as fast as the fabric's.
#[test]
fn throughput_is_the_growth_of_received_bytes_in_an_interval() {
    let reported = [(200_000, 1000), (800_000, 38_500), (1_400_000, 38_500)];
    let rows = throughput("300us", &reported, (2_000_000, 113_500));
    assert_eq!(rows, [(100.0, 1, 1.0), (700.0, 1, 2.0)], "the end is that of an interval");
    let last = [&reported[..], &[(2_000_000, 113_500)]].concat();
    assert_eq!(throughput("300us", &last, (2_000_000, 113_500)), rows, "it may be reported before");
    assert_eq!(
        throughput("300us", &reported[..2], (1_000_000, 76_000)),
        [(100.0, 1, 1.0), (400.0, 1, 1.0)],
        "all is done"
    );
    let long = [reported[0], (1_800_000, 101_000)];
    assert_eq!(throughput("800us", &long, (2_000_000, 201_000)), [(100.0, 1, 1.0)], "the last 100 us are no interval");
}

/// Two fetches of a reducer, one after the other: the engine learns when each is complete and derives the rest.
#[test]
fn jobs_follow_from_complete_messages() {
    let flows = STAR.find("[[flows]]").unwrap();
    let shuffle = "[[workload]]\nkind = \"shuffle\"\nto = \"host2\"\nsize = \"10kB\"\nparallel = 1\nstart = \"10us\"\n";
    let folder = directory(&format!("{}{shuffle}", &STAR[..flows]), &[], None);
    let kernel = BootedKernel::boot(folder.path());
    let complete = |flow: u32, after: u64| kernel.control(&GuestMessage::MessageComplete { flow }, ZERO + after);
    assert_eq!(kernel.control(&GuestMessage::Start, ZERO), 0);
    assert_eq!(complete(0, 19_999), -libc::EINVAL, "it starts at 10 us of the fabric's time, 20 of the hosts'");
    assert_eq!(calls().log, ["flow 0 has no message in flight"]);
    assert_eq!((kernel.engine.next)(), ZERO + 20_000, "when the first one is written");
    assert_eq!([complete(1, 30_000), complete(0, 50_000), complete(0, 50_000)], [-libc::EINVAL, 0, -libc::EINVAL]);
    assert_eq!([complete(1, 50_000), complete(7, 50_000)], [0, -libc::EINVAL], "the second one follows at once");
    assert_eq!(kernel.control(&GuestMessage::Finish, ZERO + 60_000), 0, "{:?}", calls().log);
    let outcome = read(&folder, "outcome.json");
    assert_eq!(outcome["manifest"]["finished"], json!(true));
    assert_eq!(column(&outcome, "flows", "start_us"), &json!([10.0, 25.0]));
    assert_eq!(column(&outcome, "flows", "fct_us"), &json!([15.0, 0.0]));
    assert_eq!(
        (column(&outcome, "jobs", "start_us"), column(&outcome, "jobs", "duration_us")),
        (&json!([10.0]), &json!([15.0]))
    );
}

const LOOP: &str = r#"
duration = "10ms"
[fabric]
kind = "hybrid"
racks = 2
hosts_per_rack = 2
[hosts]
kind = "linux"
rate = "10Gbps"
[packet]
rate = "10Gbps"
delay = "5us"
[circuit]
rate = "10Gbps"
delay = "5us"
[schedule]
kind = "solstice"
week = "2ms"
night = "20us"
least_day = "100us"
[control]
demand = "voq"
[voq]
small = 16
[[program]]
on = "all"
run = "true"
"#;

/// Where demand is what programs write, the kernel reports writes to all connections; those between hosts count.
#[test]
fn demand_counts_what_programs_write() {
    let folder = directory(LOOP, &[], None);
    assert!(BootedKernel::boot(folder.path()).engine.wrote.is_none(), "what VOQs hold is seen without the kernel");
    let folder = directory(LOOP, &[("control.demand", "adu")], None);
    let kernel = BootedKernel::boot(folder.path());
    let wrote = kernel.engine.wrote.expect("it is asked for");
    assert_eq!(kernel.control(&GuestMessage::Start, ZERO), 0);
    let connection = |to, from_port| AbiConnection { from: [10, 0, 0, 1], to, from_port, to_port: 80 };
    let [far, near, nowhere] = [[10, 0, 1, 1], [10, 0, 0, 2], [0; 4]];
    // SAFETY: connections lie there.
    let write = |to, port, bytes| unsafe { wrote(&connection(to, port), 77, bytes) };
    let close = |to, port| unsafe { (kernel.engine.closed)(&connection(to, port)) };
    kernel.go(ZERO + 1_000_000);
    write(far, 1, 5_000_000_000);
    write(near, 2, 1000);
    write(nowhere, 3, 1000);
    close(nowhere, 3);
    kernel.go(ZERO + 3_000_000);
    write(far, 1, -4_900_000_000);
    kernel.go(ZERO + 5_000_000);
    close(far, 1);
    kernel.go(ZERO + 10_000_000);
    assert_eq!(kernel.control(&GuestMessage::Finish, ZERO + 10_000_000), 0, "{:?}", calls().log);
    let outcome = read(&folder, "outcome.json");
    let seen: Vec<_> = ["week", "src", "dst", "demand_bytes"].map(|name| column(&outcome, "circuits", name)).into();
    let of_pair = |n: &usize| (seen[1][*n].as_i64(), seen[2][*n].as_i64()) == (Some(0), Some(1));
    let rows: Vec<_> = (0..seen[0].as_array().unwrap().len()).filter(of_pair).collect();
    let reported = |n: &usize| (seen[0][*n].as_i64().unwrap(), seen[3][*n].as_i64().unwrap());
    assert_eq!(rows.iter().map(reported).collect::<Vec<_>>(), [(2, 5_000_000_000), (3, 100_000_000)]);
}

#[test]
fn wrong_directories_are_refused_with_a_reason() {
    let _alone = alone();
    let refused = |folder: &TempDir, host: &AbiHost| {
        assert!(open(host, folder.path()).is_none());
        read(folder, "failure.json")["error"].as_str().unwrap().to_string()
    };
    let mend = |folder: &TempDir, name: &str, change: &dyn Fn(&mut Json)| {
        let mut json = read(folder, name);
        change(&mut json);
        std::fs::write(folder.path().join(name), json.to_string()).unwrap();
    };
    let folder = directory(STAR, &[], None);
    let text = refused(&folder, &AbiHost { abi: ABI + 1, ..HOST });
    assert!(
        text.starts_with("the kernel has version 6 of the interface, this engine has 5: run `firstlight kernel build`"),
        "{text}"
    );
    mend(&folder, "run.json", &|run| run["version"] = json!("0.0.1"));
    let text = refused(&folder, &HOST);
    assert!(text.contains("run.json is of Firstlight 0.0.1, this engine is of 0."), "{text}");
    assert_eq!(calls().log, [text], "the log has it too");
    let folder = directory(STAR, &[], None);
    mend(&folder, "plan.json", &|plan| plan["version"] = json!("0.0.1"));
    assert!(refused(&folder, &HOST).contains("plan.json is of Firstlight 0.0.1"));
    let folder = directory(STAR, &[], None);
    mend(&folder, "plan.json", &|plan| plan["hosts"][0]["host"] = json!(9));
    assert!(refused(&folder, &HOST).contains("plan.json: its hosts differ from those of experiment.toml"));
    std::fs::write(folder.path().join("plan.json"), "{").unwrap();
    assert!(refused(&folder, &HOST).contains("plan.json: EOF while parsing"));
    std::fs::write(folder.path().join("experiment.toml"), STAR.replace("queue", "quee")).unwrap();
    assert!(refused(&folder, &HOST).contains("did you mean 'queue'") || refused(&folder, &HOST).contains("queue"));
    std::fs::remove_file(folder.path().join("run.json")).unwrap();
    assert!(
        refused(&folder, &HOST).contains("cannot read") && refused(&folder, &HOST).contains("run.json: No such file")
    );
    let folder = directory(STAR, &[], Some("nowhere/packets.pcapng"));
    assert!(refused(&folder, &HOST).starts_with("cannot write the capture"));
}

#[test]
fn wrong_messages_are_refused() {
    let folder = directory(STAR, &[], None);
    let kernel = BootedKernel::boot(folder.path());
    let (invalid, already, shut) = (-libc::EINVAL, -libc::EALREADY, -libc::ESHUTDOWN);
    assert_eq!(kernel.control(&GuestMessage::Start, ZERO), 0);
    assert_eq!(kernel.control(&GuestMessage::Start, ZERO), already);
    assert_eq!(kernel.raw(&[], ZERO), invalid);
    assert_eq!(kernel.raw(&[77], ZERO), invalid);
    assert_eq!(kernel.control(&GuestMessage::FlowComplete { flow: 2 }, ZERO), invalid);
    assert_eq!(kernel.control(&GuestMessage::ProgramEnded { program: 2, code: 0 }, ZERO), invalid);
    assert_eq!(kernel.raw(&state(0, true, ReportTime::RunEnd, &[0; 50]), ZERO), invalid);
    let log = calls().log.clone();
    assert_eq!(log.len(), 6, "each has its line: {log:?}");
    assert_eq!(kernel.control(&GuestMessage::Failed("no device fl3\nat all".as_bytes()), ZERO), -libc::EIO);
    assert_eq!(read(&folder, "failure.json")["error"], "no device fl3\nat all");
    assert_eq!(kernel.control(&GuestMessage::Finish, ZERO), shut);
    assert!(!folder.path().join("outcome.json").exists());
}

#[test]
fn a_full_disk_is_reported() {
    let folder = directory(STAR, &[], None);
    std::os::unix::fs::symlink("/dev/full", folder.path().join("outcome.json.part")).unwrap();
    let kernel = BootedKernel::boot(folder.path());
    assert_eq!(kernel.control(&GuestMessage::Start, ZERO), 0);
    assert_eq!(kernel.control(&GuestMessage::Finish, ZERO + 1000), -libc::ENOSPC);
    let text = read(&folder, "failure.json")["error"].as_str().unwrap().to_string();
    assert!(text.starts_with("cannot write") && text.contains("outcome.json: No space left on device"), "{text}");
    assert!(!folder.path().join("outcome.json").exists());
}

#[test]
fn overrides_apply_to_points_of_sweeps_and_remove_keys() {
    let text = format!("{STAR}\n[sweep]\n\"switch.queue\" = [10, 20]\n");
    let folder = directory(STAR, &[("switch.queue", "10")], None);
    std::fs::write(folder.path().join("experiment.toml"), text).unwrap();
    let mut run = read(&folder, "run.json");
    run["sweep"] = json!(true);
    run["overrides"] = json!({"switch.queue": 20, "measure.tcp_info": null});
    std::fs::write(folder.path().join("run.json"), run.to_string()).unwrap();
    let kernel = BootedKernel::boot(folder.path());
    assert_eq!(kernel.control(&GuestMessage::Start, ZERO), 0);
    assert_eq!(kernel.control(&GuestMessage::Finish, ZERO + 10), 0);
    let outcome = read(&folder, "outcome.json");
    assert_eq!(outcome["manifest"]["spec"]["switch"]["queue"], 20);
    assert_eq!(outcome["manifest"]["overrides"], json!({"switch.queue": 20, "measure.tcp_info": null}));
    assert!(outcome["tables"].as_array().unwrap().iter().all(|table| table["name"] != "tcp_info"));
}

//! The C interface, as `linux/kernel/firstlight.h` defines it.
//!
//! A kernel has one engine: its session is global. The calls are sound because the kernel has one processor, calls with
//! interrupts off, and passes what the header says: no call begins within another, except the engine's calls of the
//! host. No panic unwinds into the kernel: the shared object is built to abort, after a line in the log that says why.

use crate::directory::{RunDirectory, SessionError};
use crate::driver::{Cookie, KernelCalls};
use crate::large_stack::is_on_large_stack;
use crate::session::Session;
use firstlight_linux::Processors;
use firstlight_units::Span;
use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_uchar, c_uint, c_ulong, c_ulonglong, c_ushort, c_void};
use std::net::SocketAddrV4;
use std::ptr::null;

/// Version of the interface: counted up whenever the interface changes.
pub const ABI: c_uint = 5;

/// The value of [`AbiEngine::next`] when nothing is due.
pub const NEVER: c_ulonglong = c_ulonglong::MAX;

/// The counters of a host's processors: `struct firstlight_processors`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct AbiProcessors {
    /// Picoseconds of all work.
    pub busy: c_ulonglong,
    /// Picoseconds of this that the card has caused.
    pub card: c_ulonglong,
    /// Interrupts of the card.
    pub interrupts: c_ulonglong,
}

/// The kernel's functions: `struct firstlight_host`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AbiHost {
    /// Version of the kernel's interface.
    pub abi: c_uint,
    /// A packet with timestamps of the interfaces is about to arrive: when it left its sender's and came to its
    /// receiver's.
    pub stamp: unsafe extern "C" fn(packet: *mut c_void, sent: c_uint, received: c_uint),
    /// A packet arrives at a device, with these marks made in the fabric.
    pub deliver: unsafe extern "C" fn(device: c_uint, packet: *mut c_void, marks: c_uint),
    /// A packet is lost.
    pub drop: unsafe extern "C" fn(packet: *mut c_void),
    /// The last bit of a packet has left its device.
    pub sent: unsafe extern "C" fn(packet: *mut c_void),
    /// A device whose interface was full may send again.
    pub room: unsafe extern "C" fn(device: c_uint),
    /// The counters of the processors of a device's host.
    pub processors: unsafe extern "C" fn(device: c_uint, done: *mut AbiProcessors),
    /// Writes one line to the kernel's log.
    pub log: unsafe extern "C" fn(line: *const c_char),
}

/// One direction of a TCP connection: `struct firstlight_connection`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AbiConnection {
    /// IPv4 address of the sender.
    pub from: [c_uchar; 4],
    /// IPv4 address of the receiver.
    pub to: [c_uchar; 4],
    /// TCP port of the sender.
    pub from_port: c_ushort,
    /// TCP port of the receiver.
    pub to_port: c_ushort,
}

impl AbiConnection {
    fn ends(self) -> [SocketAddrV4; 2] {
        [SocketAddrV4::new(self.from.into(), self.from_port), SocketAddrV4::new(self.to.into(), self.to_port)]
    }
}

/// The engine's functions: `struct firstlight_engine`.
#[repr(C)]
pub struct AbiEngine {
    /// Version of the engine's interface.
    pub abi: c_uint,
    /// How many devices the kernel makes.
    pub devices: c_uint,
    /// A device sends a frame. Returns 0 when the device has to wait for `room` before the next one.
    pub send: unsafe extern "C" fn(c_uint, *mut c_void, *const c_uchar, c_uint, c_uint, c_ulonglong) -> c_int,
    /// When to call `run` next, in nanoseconds; [`NEVER`] for not at all.
    pub next: extern "C" fn() -> c_ulonglong,
    /// Carries out all events that are due at this time.
    pub run: extern "C" fn(c_ulonglong),
    /// Takes a message of the guest program. Returns 0 or a negative errno value.
    pub control: unsafe extern "C" fn(*const c_uchar, c_ulong, c_ulonglong) -> c_int,
    /// A program begins to write this number of bytes to a connection. A negative number ends a write that was shorter
    /// than announced, by that number of bytes. `None` when the engine needs no writes.
    pub wrote: Option<unsafe extern "C" fn(*const AbiConnection, c_uint, c_longlong)>,
    /// A connection is closed.
    pub closed: unsafe extern "C" fn(*const AbiConnection),
}

/// The kernel's functions, after a check that its interface has our version.
#[derive(Clone, Copy)]
struct CheckedHost(AbiHost);

fn address(packet: Cookie) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(packet.get())
}

impl KernelCalls for CheckedHost {
    fn stamp(&mut self, packet: Cookie, sent: u32, received: u32) {
        // SAFETY: the kernel gave the packet by `send`, and the driver has not returned it yet.
        unsafe { (self.0.stamp)(address(packet), sent, received) }
    }

    #[inline]
    fn deliver(&mut self, device: u32, packet: Cookie, marks: u32) {
        // SAFETY: the kernel gave the packet by `send`, and the driver returns each packet once.
        unsafe { (self.0.deliver)(device, address(packet), marks) }
    }

    #[inline]
    fn drop(&mut self, packet: Cookie) {
        // SAFETY: as in `deliver`.
        unsafe { (self.0.drop)(address(packet)) }
    }

    #[inline]
    fn sent(&mut self, packet: Cookie) {
        // SAFETY: the kernel gave the packet by `send`, and the driver has not returned it yet.
        unsafe { (self.0.sent)(address(packet)) }
    }

    #[inline]
    fn room(&mut self, device: u32) {
        // SAFETY: the device exists, since it has sent a packet.
        unsafe { (self.0.room)(device) }
    }

    fn processors(&mut self, device: u32) -> Processors {
        let mut done = AbiProcessors::default();
        // SAFETY: the kernel has made the device, and writes to the place that it is given.
        unsafe { (self.0.processors)(device, &mut done) };
        let AbiProcessors { busy, card, interrupts } = done;
        Processors { busy: Span::from_ps(busy), card: Span::from_ps(card), interrupts }
    }
}

impl CheckedHost {
    /// Writes lines to the kernel's log. Not for use on the large stack: the kernel's functions need the kernel's
    /// stack.
    fn log(self, text: &str) {
        for line in text.lines() {
            let line = CString::new(line.replace('\0', " ")).unwrap_or_default();
            // SAFETY: the line ends with a zero and outlives the call.
            unsafe { (self.0.log)(line.as_ptr()) }
        }
    }
}

struct Global(UnsafeCell<Option<Running>>);

struct Running {
    session: Box<Session<CheckedHost>>,
    host: CheckedHost,
}

// SAFETY: one processor, interrupts off (see the module's comment).
unsafe impl Sync for Global {}

static GLOBAL: Global = Global(UnsafeCell::new(None));

/// The run of this kernel.
///
/// # Safety
/// Nobody else may use the run at this moment: see the module's comment.
#[inline]
unsafe fn running<'a>() -> &'a mut Running {
    // SAFETY: the caller alone uses it.
    unsafe { (*GLOBAL.0.get()).as_mut() }.expect("the kernel opens an engine before it calls it")
}

/// Opens the run of a directory: `firstlight_open_fn`. Returns null, with a line in the log, when that fails.
///
/// # Safety
/// `host` points to the kernel's functions, which stay in place; `directory` to a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firstlight_open(host: *const AbiHost, directory: *const c_char) -> *const AbiEngine {
    // SAFETY: the caller's promise. Of an interface of another version only the version may be read.
    let (abi, directory) = unsafe { ((*host).abi, RunDirectory::of_bytes(CStr::from_ptr(directory).to_bytes())) };
    if abi != ABI {
        refuse(&directory, &SessionError::Abi { kernel: abi, engine: ABI }, None);
        return null();
    }
    // SAFETY: the interface has our version.
    let checked = CheckedHost(unsafe { *host });
    log_panics(checked, directory.clone());
    match Session::open(directory.clone(), checked) {
        Ok(session) => {
            let devices = session.devices();
            let wrote: Option<unsafe extern "C" fn(_, _, _)> = if session.needs_writes() { Some(wrote) } else { None };
            // SAFETY: as the module says.
            unsafe { *GLOBAL.0.get() = Some(Running { session, host: checked }) };
            Box::leak(Box::new(AbiEngine { abi: ABI, devices, send, next, run, control, wrote, closed }))
        }
        Err(error) => {
            refuse(&directory, &error, Some(checked));
            null()
        }
    }
}

fn refuse(directory: &RunDirectory, error: &SessionError, host: Option<CheckedHost>) {
    let say = |text: &str| match host {
        Some(host) => host.log(text),
        None => eprintln!("firstlight: {text}"),
    };
    say(&error.to_string());
    if let Err(error) = directory.write_failure(&error.to_string()) {
        say(&error.to_string());
    }
}

/// Makes a panic that aborts leave a line in the log and in the directory.
fn log_panics(host: CheckedHost, directory: RunDirectory) {
    if cfg!(panic = "unwind") {
        return;
    }
    std::panic::set_hook(Box::new(move |panic| {
        let text = format!("this is a defect of the engine, please report it: {panic}").replace('\n', " ");
        if is_on_large_stack() {
            eprintln!("firstlight: {text}");
        } else {
            host.log(&text);
        }
        _ = directory.write_failure(&text);
    }));
}

unsafe extern "C" fn send(
    device: c_uint,
    packet: *mut c_void,
    frame: *const c_uchar,
    headers: c_uint,
    length: c_uint,
    now: c_ulonglong,
) -> c_int {
    // SAFETY: so many bytes lie at `frame`; nobody else uses the run.
    let (frame, running) = unsafe { (std::slice::from_raw_parts(frame, headers as usize), running()) };
    let cookie = Cookie::new(packet.expose_provenance()).expect("a packet has an address");
    running.session.send(device, cookie, frame, length as usize, now).into()
}

extern "C" fn next() -> c_ulonglong {
    // SAFETY: nobody else uses the run.
    unsafe { running() }.session.next().unwrap_or(NEVER)
}

extern "C" fn run(now: c_ulonglong) {
    // SAFETY: nobody else uses the run.
    unsafe { running() }.session.run(now);
}

unsafe extern "C" fn wrote(connection: *const AbiConnection, sequence: c_uint, bytes: c_longlong) {
    // SAFETY: a connection lies there; nobody else uses the run.
    let (connection, running) = unsafe { (*connection, running()) };
    running.session.wrote(connection.ends(), sequence, bytes);
}

unsafe extern "C" fn closed(connection: *const AbiConnection) {
    // SAFETY: as in `wrote`.
    let (connection, running) = unsafe { (*connection, running()) };
    running.session.closed(connection.ends());
}

unsafe extern "C" fn control(message: *const c_uchar, length: c_ulong, now: c_ulonglong) -> c_int {
    // SAFETY: so many bytes lie at `message`; nobody else uses the run.
    let (message, running) = unsafe { (std::slice::from_raw_parts(message, length as usize), running()) };
    match running.session.control(message, now) {
        Ok(()) => 0,
        Err(refused) => {
            running.host.log(&refused.to_string());
            -refused.errno()
        }
    }
}

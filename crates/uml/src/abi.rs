//! The C interface, as `linux/kernel/firstlight.h` has it.
//!
//! A kernel has one engine: its session is global. What makes the calls sound: the kernel has one processor and calls
//! with interrupts off, so no call begins within another, but for the engine's calls of the host; and it passes what the
//! header says. Nothing unwinds into it: the shared object is built to abort at a panic, after a line that says why.

use crate::aside::is_aside;
use crate::directory::{Directory, Failure, as_directory};
use crate::driver::{Cookie, Kernel};
use crate::session::Session;
use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_uchar, c_uint, c_ulong, c_ulonglong, c_ushort, c_void};
use std::net::SocketAddrV4;
use std::ptr::null;

/// Counted up whenever the interface changes.
pub const ABI: c_uint = 3;

/// [`Engine::next`] when nothing is due.
pub const NEVER: c_ulonglong = c_ulonglong::MAX;

/// What the kernel offers: `struct firstlight_host`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Host {
    /// Its interface's number.
    pub abi: c_uint,
    /// The packet arrives at a device, marked.
    pub deliver: unsafe extern "C" fn(device: c_uint, packet: *mut c_void, marks: c_uint),
    /// The packet is lost.
    pub drop: unsafe extern "C" fn(packet: *mut c_void),
    /// The packet's last bit has left its device.
    pub sent: unsafe extern "C" fn(packet: *mut c_void),
    /// A device may send again.
    pub room: unsafe extern "C" fn(device: c_uint),
    /// One line for the log.
    pub log: unsafe extern "C" fn(line: *const c_char),
}

/// One direction of a TCP connection: `struct firstlight_connection`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Connection {
    /// The sender's address.
    pub from: [c_uchar; 4],
    /// The receiver's.
    pub to: [c_uchar; 4],
    /// The sender's port.
    pub from_port: c_ushort,
    /// The receiver's.
    pub to_port: c_ushort,
}

impl Connection {
    fn ends(self) -> [SocketAddrV4; 2] {
        [SocketAddrV4::new(self.from.into(), self.from_port), SocketAddrV4::new(self.to.into(), self.to_port)]
    }
}

/// What the engine offers: `struct firstlight_engine`.
#[repr(C)]
pub struct Engine {
    /// Its interface's number.
    pub abi: c_uint,
    /// How many devices there are to be.
    pub devices: c_uint,
    /// A device sends a frame; 0 when it is to wait for `room` with the next one.
    pub send: unsafe extern "C" fn(c_uint, *mut c_void, *const c_uchar, c_uint, c_uint, c_ulonglong) -> c_int,
    /// When `run` is to be called next.
    pub next: extern "C" fn() -> c_ulonglong,
    /// Does all that is due.
    pub run: extern "C" fn(c_ulonglong),
    /// A message of the guest program.
    pub control: unsafe extern "C" fn(*const c_uchar, c_ulong, c_ulonglong) -> c_int,
    /// A program begins to write to a connection, or ends having written fewer bytes. None where nobody asks.
    pub wrote: Option<unsafe extern "C" fn(*const Connection, c_uint, c_longlong)>,
    /// A connection is over.
    pub closed: unsafe extern "C" fn(*const Connection),
}

/// The host's functions, once its interface is known to be ours.
#[derive(Clone, Copy)]
struct Callbacks(Host);

fn address(packet: Cookie) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(packet.get())
}

impl Kernel for Callbacks {
    #[inline]
    fn deliver(&mut self, device: u32, packet: Cookie, marks: u32) {
        // SAFETY: the packet came by `send`, and the driver gives it back once.
        unsafe { (self.0.deliver)(device, address(packet), marks) }
    }

    #[inline]
    fn drop(&mut self, packet: Cookie) {
        // SAFETY: as in `deliver`.
        unsafe { (self.0.drop)(address(packet)) }
    }

    #[inline]
    fn sent(&mut self, packet: Cookie) {
        // SAFETY: the packet came by `send`, and the driver has not given it back yet.
        unsafe { (self.0.sent)(address(packet)) }
    }

    #[inline]
    fn room(&mut self, device: u32) {
        // SAFETY: the kernel has made the device: it has sent.
        unsafe { (self.0.room)(device) }
    }
}

impl Callbacks {
    /// Puts a line into the kernel's log. Not from aside: there the kernel's own stack is not at hand.
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
    session: Box<Session<Callbacks>>,
    callbacks: Callbacks,
}

// SAFETY: one processor, interrupts off (see above).
unsafe impl Sync for Global {}

static GLOBAL: Global = Global(UnsafeCell::new(None));

/// The present run.
///
/// # Safety
/// As the module says: nobody else may have it at this moment.
#[inline]
unsafe fn running<'a>() -> &'a mut Running {
    // SAFETY: the caller has it alone.
    unsafe { (*GLOBAL.0.get()).as_mut() }.expect("the kernel calls an engine that it has opened")
}

/// Opens the run of a directory: `firstlight_open_fn`. Null, and a line in the log, when it cannot be.
///
/// # Safety
/// `host` points to the kernel's functions, which stay; `directory` to a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn firstlight_open(host: *const Host, directory: *const c_char) -> *const Engine {
    // SAFETY: the caller's promise. Of another interface nothing but its number may be read.
    let (abi, directory) = unsafe { ((*host).abi, as_directory(CStr::from_ptr(directory).to_bytes())) };
    if abi != ABI {
        refuse(&directory, &Failure::Abi { kernel: abi, engine: ABI }, None);
        return null();
    }
    // SAFETY: it is our interface.
    let callbacks = Callbacks(unsafe { *host });
    tell_of_panics(callbacks, directory.clone());
    match Session::open(directory.clone(), callbacks) {
        Ok(session) => {
            let devices = session.devices();
            let wrote: Option<unsafe extern "C" fn(_, _, _)> = if session.hears_writes() { Some(wrote) } else { None };
            // SAFETY: as the module says.
            unsafe { *GLOBAL.0.get() = Some(Running { session, callbacks }) };
            Box::leak(Box::new(Engine { abi: ABI, devices, send, next, run, control, wrote, closed }))
        }
        Err(failure) => {
            refuse(&directory, &failure, Some(callbacks));
            null()
        }
    }
}

fn refuse(directory: &Directory, failure: &Failure, callbacks: Option<Callbacks>) {
    let say = |text: &str| match callbacks {
        Some(callbacks) => callbacks.log(text),
        None => eprintln!("firstlight: {text}"),
    };
    say(&failure.to_string());
    if let Err(failure) = directory.write_failure(&failure.to_string()) {
        say(&failure.to_string());
    }
}

/// Where a panic aborts, it leaves a line in the log and in the directory.
fn tell_of_panics(callbacks: Callbacks, directory: Directory) {
    if cfg!(panic = "unwind") {
        return;
    }
    std::panic::set_hook(Box::new(move |panic| {
        let text = format!("a defect of the engine, please report it: {panic}").replace('\n', " ");
        if is_aside() {
            eprintln!("firstlight: {text}");
        } else {
            callbacks.log(&text);
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
    // SAFETY: so many bytes lie at `frame`; the run is ours alone.
    let (frame, running) = unsafe { (std::slice::from_raw_parts(frame, headers as usize), running()) };
    let cookie = Cookie::new(packet.expose_provenance()).expect("a packet has an address");
    running.session.send(device, cookie, frame, length as usize, now).into()
}

extern "C" fn next() -> c_ulonglong {
    // SAFETY: the run is ours alone.
    unsafe { running() }.session.next().unwrap_or(NEVER)
}

extern "C" fn run(now: c_ulonglong) {
    // SAFETY: the run is ours alone.
    unsafe { running() }.session.run(now);
}

unsafe extern "C" fn wrote(connection: *const Connection, sequence: c_uint, bytes: c_longlong) {
    // SAFETY: a connection lies there; the run is ours alone.
    let (connection, running) = unsafe { (*connection, running()) };
    running.session.wrote(connection.ends(), sequence, bytes);
}

unsafe extern "C" fn closed(connection: *const Connection) {
    // SAFETY: as in `wrote`.
    let (connection, running) = unsafe { (*connection, running()) };
    running.session.closed(connection.ends());
}

unsafe extern "C" fn control(message: *const c_uchar, length: c_ulong, now: c_ulonglong) -> c_int {
    // SAFETY: so many bytes lie at `message`; the run is ours alone.
    let (message, running) = unsafe { (std::slice::from_raw_parts(message, length as usize), running()) };
    match running.session.control(message, now) {
        Ok(()) => 0,
        Err(refused) => {
            running.callbacks.log(&refused.to_string());
            -refused.errno()
        }
    }
}

//! The hosts' interfaces: a TUN device each, whose other end is in the host's namespace.
//!
//! A packet that a host sends is read into a slot and passes the fabric as a record. It is then written to the device
//! of the receiving host. Checksums are left to the interface on both sides, so that none is computed.

use crate::clock;
use crate::error::Error;
use crate::fidelity::{FidelityMeter, Late};
use crate::machines::{MachineMessage, Machines};
use crate::marks;
use crate::processors::Watches;
use firstlight_lab::Fidelity;
use firstlight_lab::fidelity::Bounds;
use firstlight_linux::Context;
use firstlight_uml::{CE, Cookie, ECE, KernelCalls};
use nix::sys::uio::{readv, writev};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// The header before each packet, which describes its checksum and segments (`struct virtio_net_hdr`).
const OFFLOAD: usize = 10;
/// The first byte of that header when a checksum is still to be computed.
const CHECKSUM_LEFT: u8 = 1;
/// TUNSETOFFLOAD: checksums, but no segments of more than one packet.
const CHECKSUMS_ONLY: libc::c_ulong = 1;
/// An Ethernet header, which the engine expects before a packet; its last two bytes say IPv4 or IPv6.
const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Bytes of a frame that hold all of its headers.
const HEADERS: usize = 134;

nix::ioctl_write_int_bad!(set_offload, nix::request_code_write!(b'T', 208, size_of::<libc::c_uint>()));

/// A packet's bytes while it is in the fabric.
struct PacketSlot {
    offload: [u8; OFFLOAD],
    /// Bytes of the IP packet.
    length: usize,
    /// An Ethernet header and the packet.
    frame: Box<[u8]>,
}

/// The place of a host's interface.
enum InterfacePlace {
    Here(SyncDevice),
    /// An interface on another machine: the machine, and the number of the interface there.
    There(usize, usize),
}

/// All interfaces of a run, and the packets that the fabric has.
pub struct HostInterfaces {
    places: Vec<InterfacePlace>,
    /// The machines that have joined.
    pub machines: Machines,
    slots: Vec<PacketSlot>,
    free: Vec<usize>,
    /// Largest IP packet.
    mtu: usize,
    /// When the engine's present event was due.
    pub due: u64,
    pub meter: FidelityMeter,
    /// By how much packets and timers may be late.
    pub bounds: Bounds,
    /// The hosts' processors.
    processors: Vec<usize>,
    /// The state that other threads read while the fabric's time runs.
    watches: Option<Watches>,
}

/// An item that has come from another machine.
pub enum FromMachine {
    State,
    /// A packet of that host, which has waited since then.
    Packet {
        host: usize,
        since: u64,
        taken: Taken,
    },
}

/// The headers of a packet that a host has sent.
pub struct Taken {
    pub cookie: Cookie,
    headers: [u8; HEADERS],
    /// Bytes of the frame.
    pub length: usize,
}

impl Taken {
    /// The frame's first bytes.
    pub fn headers(&self) -> &[u8] {
        &self.headers[..self.length.min(HEADERS)]
    }

    /// The packet's first bytes.
    pub fn packet(&self) -> &[u8] {
        &self.headers()[ETHERNET..]
    }
}

impl HostInterfaces {
    /// A state without interfaces, of hosts on these processors.
    pub fn new(processors: &[usize]) -> Self {
        HostInterfaces {
            places: vec![],
            machines: Machines::default(),
            slots: vec![],
            free: vec![],
            mtu: 0,
            due: 0,
            meter: FidelityMeter::new(),
            bounds: Bounds::default(),
            processors: processors.to_vec(),
            watches: None,
        }
    }

    /// Makes the devices `fl0`, `fl1` and so on in the current namespace, for packets of up to `mtu` bytes: one for
    /// each host that is not on a machine that has joined.
    pub fn open(&mut self, count: usize, mtu: u16) -> Result<(), Error> {
        self.mtu = mtu.into();
        let mut here = 0;
        for host in 0..count {
            self.places.push(match self.machines.place(host) {
                Some((machine, device)) => InterfacePlace::There(machine, device),
                None => {
                    here += 1;
                    InterfacePlace::Here(device(here - 1)?)
                }
            });
        }
        Ok(())
    }

    /// The fabric's time begins.
    pub fn begin(&mut self) {
        self.watches = Some(Watches::start(&self.processors));
    }

    /// The files of those devices that are here, to be waited for, each with the host's number in the plan.
    pub fn files(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        self.places.iter().enumerate().filter_map(|(host, place)| match place {
            InterfacePlace::Here(device) => Some((host, file(device))),
            InterfacePlace::There(..) => None,
        })
    }

    /// The next packet that a host has sent; `None` when there is none.
    #[inline]
    pub fn take(&mut self, device: usize) -> Option<Taken> {
        let InterfacePlace::Here(device) = &self.places[device] else { return None };
        let index = self.free.pop().unwrap_or_else(|| add_slot(&mut self.slots, self.mtu));
        let slot = &mut self.slots[index];
        let mut parts = [IoSliceMut::new(&mut slot.offload), IoSliceMut::new(&mut slot.frame[ETHERNET..])];
        let read = readv(file(device), &mut parts);
        let Some(length) = read.ok().filter(|length| *length > OFFLOAD) else {
            self.free.push(index);
            return None;
        };
        Some(self.taken(index, length - OFFLOAD))
    }

    /// The next item from other machines; none if there is none.
    pub fn receive(&mut self) -> Option<FromMachine> {
        loop {
            let (host, since, start, end) = match self.machines.receive()? {
                MachineMessage::State => return Some(FromMachine::State),
                MachineMessage::Packet { host, time, content } => (host, time, content.start, content.end),
            };
            let datagram = self.machines.take_datagram();
            let taken = self.take_in(&datagram[start..end]);
            self.machines.give_datagram(datagram);
            if let Some(taken) = taken {
                return Some(FromMachine::Packet { host, since, taken });
            }
        }
    }

    /// A packet that came from another machine, with its interface's header; none when it is no packet.
    pub fn take_in(&mut self, content: &[u8]) -> Option<Taken> {
        let (offload, packet) = content.split_first_chunk::<OFFLOAD>()?;
        if packet.is_empty() || packet.len() > self.mtu {
            return None;
        }
        let index = self.free.pop().unwrap_or_else(|| add_slot(&mut self.slots, self.mtu));
        let slot = &mut self.slots[index];
        slot.offload = *offload;
        slot.frame[ETHERNET..ETHERNET + packet.len()].copy_from_slice(packet);
        Some(self.taken(index, packet.len()))
    }

    /// The content of a slot: an interface's header and a packet.
    pub fn content(&self, packet: Cookie) -> [&[u8]; 2] {
        let slot = &self.slots[index_of(packet)];
        [&slot.offload, &slot.frame[ETHERNET..ETHERNET + slot.length]]
    }

    fn taken(&mut self, index: usize, length: usize) -> Taken {
        let slot = &mut self.slots[index];
        slot.length = length;
        let (head, packet) = slot.frame.split_at_mut(ETHERNET);
        head[ETHERNET - 2..].copy_from_slice(if packet[0] >> 4 == 6 { &IPV6 } else { &IPV4 });
        let length = ETHERNET + slot.length;
        let mut headers = [0; HEADERS];
        let known = length.min(HEADERS);
        headers[..known].copy_from_slice(&slot.frame[..known]);
        Taken { cookie: cookie_of(index), headers, length }
    }

    /// The measurements of this machine's hosts since the fabric's time began: late packets, late timers, and the share
    /// of stolen time.
    pub fn measured(&mut self) -> Option<(Late, f64)> {
        Some(self.watches.take()?.end())
    }
}

#[cold]
fn add_slot(slots: &mut Vec<PacketSlot>, mtu: usize) -> usize {
    slots.push(PacketSlot { offload: [0; OFFLOAD], length: 0, frame: vec![0; ETHERNET + mtu].into_boxed_slice() });
    slots.len() - 1
}

fn cookie_of(index: usize) -> Cookie {
    Cookie::new(index + 1).expect("one more than something")
}

fn index_of(cookie: Cookie) -> usize {
    cookie.get() - 1
}

fn device(index: usize) -> Result<SyncDevice, Error> {
    let name = format!("fl{index}");
    let what = || format!("cannot make the network device {name} (CONFIG_TUN, /dev/net/tun)");
    let made = DeviceBuilder::new().name(&name).layer(Layer::L3).offload(true).enable(false).build_sync();
    let device = made.context(what)?;
    device.set_nonblocking(true).context(what)?;
    // SAFETY: the descriptor is the device's, and the call takes a number.
    #[allow(unsafe_code)]
    unsafe { set_offload(device.as_raw_fd(), CHECKSUMS_ONLY as libc::c_int) }.context(what)?;
    Ok(device)
}

/// The device's file.
fn file(device: &SyncDevice) -> BorrowedFd<'_> {
    // SAFETY: the descriptor is open as long as the device is, which is borrowed.
    #[allow(unsafe_code)]
    unsafe {
        BorrowedFd::borrow_raw(device.as_raw_fd())
    }
}

impl KernelCalls for HostInterfaces {
    fn deliver(&mut self, device: u32, packet: Cookie, marks: u32) {
        let index = index_of(packet);
        let slot = &mut self.slots[index];
        let ip = &mut slot.frame[ETHERNET..ETHERNET + slot.length];
        if marks & CE != 0 {
            marks::set_ce(ip);
        }
        if marks & ECE != 0 {
            marks::set_ece(ip, slot.offload[0] & CHECKSUM_LEFT != 0);
        }
        match &self.places[device as usize] {
            InterfacePlace::Here(device) => {
                let written = writev(file(device), &[IoSlice::new(&slot.offload), IoSlice::new(ip)]);
                if written.is_err() {
                    self.meter.lost += 1;
                }
                self.meter.on_delivered(clock::now().saturating_sub(self.due));
            }
            // The other machine measures how late the packet is.
            InterfacePlace::There(machine, device) => {
                self.machines.send(*machine, *device, self.due, [&slot.offload, ip])
            }
        }
        self.free.push(index);
    }

    #[inline]
    fn drop(&mut self, packet: Cookie) {
        self.free.push(index_of(packet));
    }

    /// The kernel has given the packet's memory back long ago: a link's rate is kept by the device's queue.
    #[inline]
    fn sent(&mut self, _: Cookie) {}

    /// A device is never stopped: packets that do not fit wait in its own queue.
    fn room(&mut self, _: u32) {}

    fn fidelity(&mut self) -> Option<Fidelity> {
        let (mut timers, stolen) = self.measured()?;
        let theirs = self.machines.add_to(&mut self.meter, &mut timers);
        let stolen = stolen.max(theirs);
        Some(self.meter.fidelity(self.bounds, &timers, stolen))
    }
}

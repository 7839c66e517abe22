//! A machine that has joined a run: its hosts are here, and the fabric is on the engine's machine.
//!
//! Packets of hosts go to the engine when they come, with the moment at which they came. Packets from the engine are
//! handed to a host at once, and their lateness is measured.

use crate::clock;
use crate::error::Error;
use crate::fidelity::Late;
use crate::groups::Groups;
use crate::guest::{self, Guest};
use crate::interfaces::HostInterfaces;
use crate::machines::{BEGINNING, SILENCE, make_room};
use crate::peer::{EngineState, JoinedMeasurements, JoinedState, PacketFrom, Peer, Received};
use crate::processors::{self, ProcessorShares};
use crate::seal::{LONGEST, Opener, Sealer};
use firstlight_linux::{Context, DILATION, DilatedHost, Dilation, GuestMessage};
use firstlight_uml::{KernelCalls, RunDirectory, SessionError};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signalfd::SignalFd;
use serde::Deserialize;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;

/// The file that makes this program one of a machine that has joined.
pub const JOIN: &str = "join.json";
/// The descriptors besides devices that this program waits for.
const GUEST: u64 = u64::MAX;
const SIGNAL: u64 = u64::MAX - 1;
const ENGINE: u64 = u64::MAX - 2;
/// Packets of one device before the others are looked at.
const PACKETS: usize = 16;
const DATAGRAMS: usize = 64;
/// How long this program sleeps at most, in milliseconds: states are sent meanwhile.
const REST: u8 = 2;
/// How long packets may be under way when the fabric's time is over, in nanoseconds.
const UNDER_WAY: u64 = 200_000_000;
/// How long the program that runs the hosts may take to end its programs, and how long the engine is waited for then.
const ENDING: u64 = 10_000_000_000;
const LINGER: u64 = 2_000_000_000;

/// The machine's orders.
#[derive(Clone, Debug, Deserialize)]
struct Order {
    engine: SocketAddr,
    /// This machine's number among those that joined.
    machine: u8,
    /// Keys of datagrams to it and from it.
    keys: [Vec<u8>; 2],
    factor: u32,
    guest: PathBuf,
    libvt: PathBuf,
}

/// Runs this machine's hosts to the end of the run.
///
/// # Errors
/// When the engine is silent, the hosts cannot be set up, or a signal comes.
pub fn run(directory: &RunDirectory, signals: &SignalFd) -> Result<(), Error> {
    let order: Order = serde_json::from_str(&directory.text(JOIN)?)
        .map_err(|error| SessionError::Content { path: directory.path(JOIN), problem: error.to_string() })?;
    let processors = ProcessorShares::find()?;
    let mut link = JoinLink::open(&order)?;
    let state = link.wait_for_state(signals)?;
    guest::enter_namespaces()?;
    let mut interfaces = HostInterfaces::new(&processors.hosts);
    interfaces.open(state.rates.len(), state.mtu)?;
    let groups = Groups::make(state.rates.len(), state.cores, order.factor)?;
    let dilation = dilation(&order, &state, &processors, &groups);
    let path = directory.path(DILATION);
    let text = serde_json::to_string(&dilation).expect("JSON can represent it");
    fs::write(&path, text).context(|| format!("cannot write {}", path.display()))?;
    let guest = Guest::start(&order.guest, directory)?;
    processors::stay_on(processors.engine)?;
    processors::go_first();
    JoinedMachine::new(link, interfaces, guest, state, signals)?.run()
}

fn dilation(order: &Order, state: &EngineState, processors: &ProcessorShares, groups: &Groups) -> Dilation {
    let environment =
        vec![("LIBVT_TDF".into(), order.factor.to_string()), ("LD_PRELOAD".into(), order.libvt.display().to_string())];
    let host = |(rate, group): (&u64, PathBuf)| DilatedHost { rate: *rate, group: Some(group) };
    Dilation {
        processors: processors.hosts.clone(),
        environment,
        hosts: state.rates.iter().zip(groups.files()).map(host).collect(),
    }
}

/// The way to the engine.
struct JoinLink {
    socket: UdpSocket,
    engine: SocketAddr,
    peer: Peer,
    datagram: Vec<u8>,
}

impl JoinLink {
    /// Opens it, in the machine's own network namespace.
    fn open(order: &Order) -> Result<Self, Error> {
        let what = || format!("cannot send to the engine at {} (UDP)", order.engine);
        let any: SocketAddr = if order.engine.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(any).context(what)?;
        // From now on the socket takes datagrams of the engine's address alone.
        socket.connect(order.engine).context(what)?;
        make_room(&socket)?;
        let [to, from] = &order.keys;
        let peer = Peer::new(Sealer::new(from, order.machine), Opener::new(to, order.machine));
        Ok(JoinLink { socket, engine: order.engine, peer, datagram: vec![0; LONGEST] })
    }

    fn speak(&mut self, news: bool, state: &JoinedState) {
        if let Some(datagram) = self.peer.state(news, state) {
            // The engine may not listen yet, or no more.
            let _ = self.socket.send(datagram);
        }
    }

    /// Waits for the engine's first state, which has the hosts' settings.
    fn wait_for_state(&mut self, signals: &SignalFd) -> Result<EngineState, Error> {
        let (state, began) = (JoinedState::default(), clock::now());
        loop {
            self.speak(false, &state);
            let received = self.socket.recv(&mut self.datagram).ok();
            if let Some(length) = received {
                if let Some(Received::State(state)) = self.peer.receive::<EngineState>(&self.datagram[..length]) {
                    return Ok(state);
                }
                continue;
            }
            if signals.read_signal().context(|| "cannot wait for signals".into())?.is_some() {
                return Err(Error::Signal);
            }
            if clock::now() > began + BEGINNING {
                return Err(Error::Machine(format!(
                    "the engine did not speak within {} s: datagrams (UDP) of {} do not come here",
                    BEGINNING / 1_000_000_000,
                    self.engine
                )));
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    fn check(&self) -> Result<(), Error> {
        if clock::now() <= self.peer.heard + SILENCE {
            return Ok(());
        }
        Err(Error::Machine(format!(
            "the engine's machine was silent for {} s: its run has ended, or no datagrams (UDP) come from it",
            SILENCE / 1_000_000_000
        )))
    }
}

/// The machine while its hosts run.
struct JoinedMachine {
    link: JoinLink,
    interfaces: HostInterfaces,
    guest: Guest,
    epoll: Epoll,
    own: JoinedState,
    engine: EngineState,
    message: Vec<u8>,
    /// When the fabric's time ended, if it has.
    over_since: Option<u64>,
    /// When the program that runs the hosts ended, if it has.
    gone_since: Option<u64>,
}

impl JoinedMachine {
    fn new(
        link: JoinLink,
        interfaces: HostInterfaces,
        guest: Guest,
        engine: EngineState,
        signals: &SignalFd,
    ) -> Result<Self, Error> {
        let what = || "cannot wait for packets".into();
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).context(what)?;
        let event = |data| EpollEvent::new(EpollFlags::EPOLLIN, data);
        for (device, file) in interfaces.files() {
            epoll.add(file, event(device as u64)).context(what)?;
        }
        epoll.add(guest.socket(), event(GUEST)).context(what)?;
        epoll.add(signals, event(SIGNAL)).context(what)?;
        epoll.add(&link.socket, event(ENGINE)).context(what)?;
        let own = JoinedState::default();
        Ok(JoinedMachine {
            link,
            interfaces,
            guest,
            epoll,
            own,
            engine,
            message: vec![],
            over_since: None,
            gone_since: None,
        })
    }

    fn run(&mut self) -> Result<(), Error> {
        let mut events = vec![EpollEvent::empty(); self.engine.rates.len() + 3];
        loop {
            let runs = self.engine.begun && !self.engine.over;
            let rest = if runs { EpollTimeout::ZERO } else { EpollTimeout::from(REST) };
            let ready = self.epoll.wait(&mut events, rest).context(|| "cannot wait for packets".into())?;
            for event in &events[..ready] {
                match event.data() {
                    SIGNAL => return Err(Error::Signal),
                    GUEST => self.on_guest()?,
                    ENGINE => self.on_datagrams(),
                    device => self.on_packets(device as usize),
                }
            }
            self.link.speak(false, &self.own);
            self.link.check()?;
            self.end_hosts();
            if self.may_go() {
                return Ok(());
            }
        }
    }

    /// Sends a host's packets to the engine.
    fn on_packets(&mut self, device: usize) {
        for _ in 0..PACKETS {
            let Some(taken) = self.interfaces.take(device) else { return };
            if self.engine.begun && self.over_since.is_none() {
                let datagram = self.link.peer.packet(device, clock::now(), self.interfaces.content(taken.cookie));
                // The engine's count shows a lost datagram.
                let _ = self.link.socket.send(datagram);
            }
            self.interfaces.drop(taken.cookie);
        }
    }

    fn on_datagrams(&mut self) {
        for _ in 0..DATAGRAMS {
            let JoinLink { socket, peer, datagram, .. } = &mut self.link;
            let Ok(length) = socket.recv(datagram) else { return };
            match peer.receive::<EngineState>(&datagram[..length]) {
                None => {}
                Some(Received::State(state)) => self.on_state(state),
                Some(Received::Packet(PacketFrom { device, time, content })) => {
                    let Some(taken) = self.interfaces.take_in(content) else { continue };
                    if device >= self.engine.rates.len() {
                        self.interfaces.drop(taken.cookie);
                        continue;
                    }
                    self.interfaces.due = time;
                    // The engine has marked it.
                    self.interfaces.deliver(device as u32, taken.cookie, 0);
                }
            }
        }
    }

    fn on_state(&mut self, state: EngineState) {
        let begun = std::mem::replace(&mut self.engine, state).begun;
        if !begun && self.engine.begun {
            self.interfaces.meter.running = true;
            self.interfaces.begin();
            self.guest.answer(0);
        }
        if self.engine.over {
            self.over_since.get_or_insert_with(clock::now);
        }
    }

    /// Measures when all packets have come that are to come, and lets the hosts' program end.
    fn end_hosts(&mut self) {
        let Some(since) = self.over_since.filter(|_| self.own.measured.is_none()) else { return };
        if self.link.peer.got < self.engine.sent && clock::now() < since + UNDER_WAY {
            return;
        }
        let (timers, stolen) = self.interfaces.measured().unwrap_or_else(|| (Late::new(), 0.0));
        let meter = &self.interfaces.meter;
        self.own.measured = Some(JoinedMeasurements {
            delivered: meter.delivered.counts(),
            timers: timers.counts(),
            stolen,
            lost: meter.lost,
            sent: self.link.peer.sent,
            got: self.link.peer.got,
        });
        self.interfaces.meter.running = false;
        self.link.speak(true, &self.own);
        self.guest.answer(0);
    }

    fn on_guest(&mut self) -> Result<(), Error> {
        if !self.guest.receive(&mut self.message)? {
            if self.own.measured.is_none() && self.own.failed.is_none() {
                return Err(Error::Guest);
            }
            if self.gone_since.is_none() {
                self.gone_since = Some(clock::now());
                // The descriptor stays readable from then on.
                let _ = self.epoll.delete(self.guest.socket());
            }
            return Ok(());
        }
        match GuestMessage::decode(&self.message) {
            // Both are answered when the engine says so.
            Ok(GuestMessage::Start) => self.own.ready = true,
            Ok(GuestMessage::Finish) => self.own.finished = true,
            Ok(GuestMessage::ProgramEnded { program, code }) => {
                self.own.ended.push((program, code));
                self.guest.answer(0);
            }
            Ok(GuestMessage::Failed(why)) => {
                self.own.failed = Some(String::from_utf8_lossy(why).into_owned());
                self.guest.answer(0);
            }
            _ => self.guest.answer(libc::EINVAL),
        }
        self.link.speak(true, &self.own);
        Ok(())
    }

    /// Whether all is said: the hosts are gone, and the engine needs nothing more.
    fn may_go(&self) -> bool {
        let now = clock::now();
        let gone = self.gone_since.is_some() || self.over_since.is_some_and(|since| now > since + ENDING);
        let heard = self.engine.done || self.gone_since.is_some_and(|since| now > since + LINGER);
        gone && heard
    }
}

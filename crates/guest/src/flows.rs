//! Flows: a thread for each end, which sends or receives bytes in large pieces and otherwise sleeps.
//!
//! The message relay hands a flow of messages each of its messages when that is due. The sender connects with the first
//! message, and its socket does not delay small ones (TCP_NODELAY), like those of programs that exchange messages,
//! unless the experiment has Nagle's algorithm.
//!
//! No end ever closes its connection, so that the last packets carry data.

use crate::clock::{self, Stopwatch};
use crate::engine_device::EngineDevice;
use crate::failure::{Context, GuestFailure};
use crate::hosts::GuestHost;
use crate::message_relay::{Inboxes, MessageRelay};
use crate::run::RunEvents;
use crate::socket;
use firstlight_linux::{FlowPlan, GuestMessage, HostPlan, ReportTime};
use firstlight_units::{Bytes, Rate};
use nix::errno::Errno;
use nix::sys::sendfile::sendfile;
use nix::sys::socket::{SockaddrIn, connect, setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};
use std::fs::{File, OpenOptions};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;

/// Bytes that one call sends at most.
const PIECE: u64 = 1 << 24;
/// Bytes that one call sends at most where the flow is to stop.
const SHORT: u64 = 1 << 16;
/// A file of zeros that senders send from: its pages go to the network uncopied, where a buffer would be copied.
const ZEROS: &str = "/run/zeros";
/// Bytes that one call receives at most.
const LARGE: u64 = 1 << 30;
/// Bytes that wake a receiver in dilated time. Below them the kernel acknowledges every second segment as it arrives;
/// otherwise an ACK waits until the program has read, on a processor that many hosts share. It is half of a kernel's
/// first window: the other half is open while the program wakes up.
const WAKING: u64 = 1 << 15;
/// Stack of a flow's thread, in bytes.
const STACK: usize = 32 * 1024;

/// One connection with its two ends.
#[derive(Clone)]
pub struct GuestFlow {
    plan: FlowPlan,
    /// The flow in words, for error messages.
    route: String,
    to: SocketAddrV4,
    sender: Arc<OwnedFd>,
    listener: Arc<TcpListener>,
    receiver: Arc<OnceLock<TcpStream>>,
    /// Whether the hosts run in dilated time, on the machine's kernel.
    dilated: bool,
}

/// Makes the sockets of all flows, host by host. The hosts may run in dilated time.
pub fn prepare(
    plans: &[FlowPlan],
    hosts: &[GuestHost],
    addresses: &[HostPlan],
    dilated: bool,
) -> Result<Vec<GuestFlow>, GuestFailure> {
    let mut senders: Vec<Option<OwnedFd>> = plans.iter().map(|_| None).collect();
    let mut listeners: Vec<Option<OwnedFd>> = plans.iter().map(|_| None).collect();
    for (index, host) in hosts.iter().enumerate() {
        let own = |plan: &&FlowPlan| plan.from == index || plan.to == index;
        if plans.iter().find(own).is_none() {
            continue;
        }
        host.enter()?;
        let address = addresses[index].address;
        let bound = |plan: &FlowPlan, port: u16| socket::bound(SocketAddrV4::new(address, port), &plan.cc, plan.class);
        for (plan, (sender, listener)) in plans.iter().zip(senders.iter_mut().zip(&mut listeners)) {
            let named =
                |error: GuestFailure| GuestFailure::new(format!("flow {} on {}: {error}", plan.flow, host.name));
            if plan.from == index {
                *sender = Some(bound(plan, plan.from_port).map_err(named)?);
            }
            if plan.to == index {
                let socket = bound(plan, plan.to_port).map_err(named)?;
                socket::listen_for_one(&socket).map_err(named)?;
                *listener = Some(socket);
            }
        }
    }
    let ends = plans.iter().zip(senders.into_iter().zip(listeners));
    let flow = |(plan, (sender, listener)): (&FlowPlan, (Option<OwnedFd>, Option<OwnedFd>))| {
        let lost = || GuestFailure::new(format!("flow {} names a host that the plan does not have", plan.flow));
        Ok(GuestFlow {
            plan: plan.clone(),
            route: format!("flow {} from {} to {}", plan.flow, hosts[plan.from].name, hosts[plan.to].name),
            to: SocketAddrV4::new(addresses[plan.to].address, plan.to_port),
            sender: Arc::new(sender.ok_or_else(lost)?),
            listener: Arc::new(listener.ok_or_else(lost)?.into()),
            receiver: Arc::new(OnceLock::new()),
            dilated,
        })
    };
    ends.map(flow).collect()
}

/// Starts the threads of all flows, which wait for `start`. Flows of messages get them from `relay`.
pub fn start(
    flows: &[GuestFlow],
    start: &Arc<Barrier>,
    events: &RunEvents,
    engine: &EngineDevice,
    relay: &Arc<MessageRelay>,
    inboxes: Vec<Inboxes>,
) -> Result<(), GuestFailure> {
    let zeros = Arc::new(zeros().context(|| format!("cannot make {ZEROS}"))?);
    for (index, (flow, inboxes)) in flows.iter().zip(inboxes).enumerate() {
        let [sender, receiver] = [flow.clone(), flow.clone()];
        let (zeros, engine, relay) = (Arc::clone(&zeros), engine.clone(), Arc::clone(relay));
        if let Some(at) = flow.plan.start {
            let of_sender = engine.clone();
            spawn(start, events, move || sender.send(at, &zeros, &of_sender))?;
            spawn(start, events, move || receiver.receive(&engine))?;
        } else {
            spawn(start, events, move || sender.send_messages(inboxes.sender, &zeros, &engine))?;
            spawn(start, events, move || receiver.receive_messages(inboxes.receiver, || relay.received(index)))?;
        }
    }
    Ok(())
}

/// How many threads `flows` flows have; all of them wait for the start.
pub fn threads(flows: usize) -> usize {
    2 * flows
}

fn zeros() -> std::io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(ZEROS)?;
    file.set_len(PIECE)?;
    Ok(file)
}

fn spawn(
    start: &Arc<Barrier>,
    events: &RunEvents,
    work: impl FnOnce() -> Result<bool, GuestFailure> + Send + 'static,
) -> Result<(), GuestFailure> {
    let (start, events) = (Arc::clone(start), events.clone());
    let body = move || {
        start.wait();
        match work() {
            Ok(true) => events.flow_complete(),
            Ok(false) => {}
            Err(failure) => events.failed(failure),
        }
    };
    thread::Builder::new().stack_size(STACK).spawn(body).map(drop).context(|| "cannot start a flow's thread".into())
}

impl GuestFlow {
    /// Connects at `at` nanoseconds and sends all of the flow's bytes.
    fn send(&self, at: u64, zeros: &File, engine: &EngineDevice) -> Result<bool, GuestFailure> {
        if let Some(stop) = self.plan.stop {
            let watch = Stopwatch::new()?;
            watch.start()?;
            clock::sleep(at);
            self.connect(engine)?;
            self.write_until(zeros, stop, &watch)?;
        } else {
            clock::sleep(at);
            self.connect(engine)?;
            self.write(zeros, 0, self.plan.size.unwrap_or(u64::MAX))?;
        }
        // Like a close: the last segment is sent though it is not full.
        self.flush()?;
        Ok(false)
    }

    /// Connects with the first message and sends each message as the inbox hands it over.
    fn send_messages(&self, inbox: Receiver<u64>, zeros: &File, engine: &EngineDevice) -> Result<bool, GuestFailure> {
        let mut sent = 0;
        for (index, bytes) in inbox.into_iter().enumerate() {
            if index == 0 {
                self.connect(engine)?;
                self.flush()?;
            }
            self.write(zeros, sent, bytes)?;
            sent += bytes;
        }
        Ok(false)
    }

    /// Connects, and reports when the connection is there.
    fn connect(&self, engine: &EngineDevice) -> Result<(), GuestFailure> {
        connect(self.sender.as_raw_fd(), &SockaddrIn::from(self.to))
            .context(|| format!("{}: cannot connect to {}", self.route, self.to))?;
        engine.report(GuestMessage::FlowConnected { flow: self.plan.flow })
    }

    /// Sends segments that are not full from now on (TCP_NODELAY), unless the plan leaves that to Nagle's algorithm.
    fn flush(&self) -> Result<(), GuestFailure> {
        if self.plan.nagle {
            return Ok(());
        }
        setsockopt(&self.sender, sockopt::TcpNoDelay, &true)
            .context(|| format!("{}: cannot set TCP_NODELAY", self.route))
    }

    /// Writes `bytes` bytes to a connection that has sent `sent` bytes before.
    fn write(&self, zeros: &File, mut sent: u64, bytes: u64) -> Result<(), GuestFailure> {
        let end = sent.saturating_add(bytes);
        while sent < end {
            sent += self
                .write_once(zeros, sent, end - sent)
                .context(|| format!("{}: the sender's connection failed", self.route))?;
        }
        Ok(())
    }

    /// One call that sends at most `most` bytes; returns how many it has sent. Data lie in the pages of the file as
    /// they do in the stream, whatever the messages, like those of a program that writes to one buffer after another.
    fn write_once(&self, zeros: &File, sent: u64, most: u64) -> nix::Result<u64> {
        let at = sent % PIECE;
        sendfile(&self.sender, zeros, Some(&mut (at as i64)), most.min(PIECE - at) as usize).map(|sent| sent as u64)
    }

    /// Writes until the watch shows `stop` nanoseconds. What the socket's buffer holds then is still sent.
    fn write_until(&self, zeros: &File, stop: u64, watch: &Stopwatch) -> Result<(), GuestFailure> {
        let mut sent = 0;
        loop {
            let left = stop.saturating_sub(watch.elapsed()?).div_ceil(1000);
            if left == 0 {
                return Ok(());
            }
            setsockopt(&self.sender, sockopt::SendTimeout, &TimeVal::microseconds(left as i64))
                .context(|| format!("{}: cannot set a timeout", self.route))?;
            match self.write_once(zeros, sent, SHORT) {
                Ok(bytes) => sent += bytes,
                Err(Errno::EAGAIN) => {}
                Err(error) => return Err(error).context(|| format!("{}: the sender's connection failed", self.route)),
            }
        }
    }

    /// Accepts the connection and receives all bytes of the flow. Returns true: the flow is complete.
    fn receive(&self, engine: &EngineDevice) -> Result<bool, GuestFailure> {
        let receiver = self.accept()?;
        let mut left = self.plan.size.unwrap_or(u64::MAX);
        if self.dilated && self.plan.reads.is_none() && left > WAKING {
            self.wake_at(receiver, WAKING)?;
            while left > WAKING {
                left -= self.discard(receiver, (left - WAKING).min(LARGE), true)?;
            }
            self.wake_at(receiver, 1)?;
        }
        while left > 0 {
            left -= match self.plan.reads {
                None => self.discard(receiver, left.min(LARGE), true)?,
                Some(reads) => {
                    let read = self.discard(receiver, left.min(reads.size), false)?;
                    if read < left {
                        clock::sleep(Rate::from_bps(reads.bps).saturating_tx_time(Bytes::new(read)).ceil_ns());
                    }
                    read
                }
            };
        }
        engine.report(GuestMessage::FlowComplete { flow: self.plan.flow })?;
        Ok(true)
    }

    /// Accepts the connection and receives each message. `received` reports a message and returns whether it was the
    /// flow's last one; so does this function.
    fn receive_messages(
        &self,
        inbox: Receiver<u64>,
        received: impl Fn() -> Result<bool, GuestFailure>,
    ) -> Result<bool, GuestFailure> {
        let receiver = self.accept()?;
        // All bytes that have arrived are read at once, whatever messages they belong to.
        let mut unclaimed = 0;
        for bytes in inbox {
            while unclaimed < bytes {
                unclaimed += self.discard(receiver, LARGE, false)?;
            }
            unclaimed -= bytes;
            self.delay_acks(receiver)?;
            if received()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn accept(&self) -> Result<&TcpStream, GuestFailure> {
        let accepted = self.listener.accept();
        let (accepted, _) = accepted.context(|| format!("{}: cannot accept its connection", self.route))?;
        self.delay_acks(&accepted)?;
        Ok(self.receiver.get_or_init(|| accepted))
    }

    /// Delays ACKs as if an answer followed, until one has been late, where the plan says so.
    fn delay_acks(&self, receiver: &TcpStream) -> Result<(), GuestFailure> {
        if !self.plan.interactive {
            return Ok(());
        }
        socket::delay_acks(receiver).context(|| format!("{}: cannot unset TCP_QUICKACK", self.route))
    }

    /// Wakes the receiver once so many bytes have arrived.
    fn wake_at(&self, receiver: &TcpStream, bytes: u64) -> Result<(), GuestFailure> {
        socket::wake_at(receiver, bytes as i32).context(|| format!("{}: cannot set SO_RCVLOWAT", self.route))
    }

    /// Receives up to `most` bytes, as soon as there are any. Returns their number.
    fn discard(&self, receiver: &TcpStream, most: u64, all: bool) -> Result<u64, GuestFailure> {
        let received = socket::discard(receiver, most as usize, all)
            .context(|| format!("{}: the receiver's connection failed", self.route))?;
        if received == 0 {
            return Err(GuestFailure::new(format!("{}: the sender closed its connection", self.route)));
        }
        Ok(received as u64)
    }

    /// Reports the state of the sending end to the engine.
    pub fn report_sender(&self, when: ReportTime, engine: &EngineDevice) -> Result<(), GuestFailure> {
        self.report(true, &*self.sender, when, engine)
    }

    /// Reports the states of both ends to the engine; a receiver without a connection has none.
    pub fn report_both(&self, when: ReportTime, engine: &EngineDevice) -> Result<(), GuestFailure> {
        self.report_sender(when, engine)?;
        self.report_receiver(when, engine)
    }

    /// Reports the state of the receiving end to the engine, if it has a connection.
    pub fn report_receiver(&self, when: ReportTime, engine: &EngineDevice) -> Result<(), GuestFailure> {
        self.receiver.get().map_or(Ok(()), |receiver| self.report(false, receiver, when, engine))
    }

    fn report(
        &self,
        sender: bool,
        socket: &impl AsRawFd,
        when: ReportTime,
        engine: &EngineDevice,
    ) -> Result<(), GuestFailure> {
        let info = socket::info(socket).context(|| format!("{}: cannot read TCP_INFO", self.route))?;
        engine.report(GuestMessage::FlowState { flow: self.plan.flow, sender, when, info: &info })
    }
}
